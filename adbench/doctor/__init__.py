"""What the machine is like to measure on."""
