"""Matrices of series: products, factorisations, and eigenvalues by lifting."""
