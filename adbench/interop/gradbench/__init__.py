"""gradbench's protocol: adbench as a gradbench tool (tool.py), and gradbench tools as backends (tool_backend.py)."""
