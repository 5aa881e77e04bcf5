"""The engine itself. Read rule, recording, node, sweep, forward, functionals, in this order."""
