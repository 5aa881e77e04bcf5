"""Fast paths of the engine: the same results, sooner. `switch` puts them in place, and takes them away for a while."""
