"""Many stored runs: their list, and each cell over them."""
