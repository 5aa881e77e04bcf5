"""Record a Python function as a trace: symbols, guards and simplification."""
