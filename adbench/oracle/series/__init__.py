"""Truncated power series over balls: one evaluation of a source on x + t v gives f and its derivatives, proved."""
