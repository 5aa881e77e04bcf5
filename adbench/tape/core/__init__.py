"""The engine: rules, recording, the reverse sweep, forward mode and the functionals."""
