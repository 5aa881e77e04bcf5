"""Functions of torch on the oracle's numbers, one ATen operation at a time."""
