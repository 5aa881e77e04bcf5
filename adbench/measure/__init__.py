"""Clock, memory, machine: how long, how much, where. Knows nothing of derivatives."""
