"""gradbench's protocol: adbench as one of its tools (tool.py), and its tools as backends of adbench (backend.py)."""
