"""Loops over arrays: their operations and their innermost axis."""
