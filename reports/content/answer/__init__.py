"""The answer that a run gives, in words."""
