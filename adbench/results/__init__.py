"""The files of a run (journal, run.json) and the conclusions from them."""
