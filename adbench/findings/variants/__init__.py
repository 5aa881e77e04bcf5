"""Eager and compiled forms of one library, judged against the truth together."""
