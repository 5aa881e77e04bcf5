"""Mathematical functions as kernels: the same instructions for a number and for a vector of eight."""
