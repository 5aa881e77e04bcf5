"""adbench's protocol for programs in other languages: docs/reference/process-protocol.md, protocol.schema.json."""
