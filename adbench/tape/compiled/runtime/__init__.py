"""Compiled functions: dispatch, entry points, code cache."""
