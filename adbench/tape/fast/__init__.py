"""Fast paths: they give the engine's results in less time. `switch` installs them, and can switch them off."""
