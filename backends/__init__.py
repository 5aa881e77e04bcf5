"""One file per library: how to trace, call and wait for it. The contract is in adbench/model/backend.py."""
