"""Functions of jax on the oracle's numbers."""
