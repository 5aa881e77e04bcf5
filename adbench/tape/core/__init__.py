"""The engine itself; read rule, recording, node, sweep, forward, functionals. It knows no function by name."""
