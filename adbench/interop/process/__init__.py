"""adbench's own protocol for programs in other languages: docs/process-protocol.md, protocol.schema.json."""
