"""What a run leaves: journal, run.json, and what can be concluded from them."""
