"""One row per function: its value and its derivatives."""
