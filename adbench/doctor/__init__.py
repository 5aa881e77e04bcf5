"""Checks of the machine before measuring."""
