"""Truncated power series over balls: one evaluation of a text on x + t v gives f and its derivatives, proved."""
