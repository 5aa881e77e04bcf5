"""Time, memory and machine: how long, how much, where. Knows no derivatives."""
