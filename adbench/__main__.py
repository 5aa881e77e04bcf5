"""`python -m adbench` is the command `adbench`."""

from adbench.cli import main

main()
