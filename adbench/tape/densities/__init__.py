"""Log densities and probabilities, in Stan's names."""
