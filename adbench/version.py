"""The version, alone in its file so that `adbench --version` and the build read it without importing anything."""

__version__ = "0.2.0"
