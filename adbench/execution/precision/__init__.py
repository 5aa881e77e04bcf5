"""A user's function in the precision of its arguments, and a kernel against its definition."""
