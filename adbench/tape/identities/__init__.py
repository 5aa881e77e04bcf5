"""Compositions that are smoother than their parts, and those behind an overflow."""
