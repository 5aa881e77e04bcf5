"""From a Python function to a trace: symbols, guards and simplification."""
