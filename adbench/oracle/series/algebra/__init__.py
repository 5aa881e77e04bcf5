"""Matrices of series: products, factorisations, and eigenvalues by lifting; entries of arrays by their positions."""
