"""Functions of every kind with derivatives known to fifty digits, and functions with planted wrong rules."""
