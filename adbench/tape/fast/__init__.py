"""Fast paths of the engine: the same results, sooner."""
