"""A user's function: its arguments, its library, and its translation for the oracle."""
