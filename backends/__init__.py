"""One file per library: how to trace, call and wait for it. adbench/model/backend.py has the contract."""
