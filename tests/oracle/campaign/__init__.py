"""Backends with planted faults of many kinds, and the results of checking them."""
