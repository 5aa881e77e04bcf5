"""One file per library: how to trace, call and wait for it. The contract is in adbench/suite/backend.py."""
