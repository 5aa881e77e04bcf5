"""A user's function: its arguments, the library that it is written for, and its text for the oracle."""
