"""A second set of functions, written after the first was examined."""
