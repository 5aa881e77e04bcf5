"""Sparse Jacobians and Hessians: their patterns, colourings, and compressed programs."""
