"""Compiled functions: dispatch, entry points, the code cache."""
