"""Singular values and vectors, and their derivatives."""
