"""Where a fault is discussed: a thread of the library's, or that of a trap with the same function."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from adbench.findings.conform.judgement import Fault
from adbench.model.backend import KnownBug, known_bug

_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
TRAPS: Mapping[str, Sequence[str]] = _TABLES.pop("traps")
"""Operation -> cases with the same function."""

THREADS: Mapping[str, Mapping[str, str]] = _TABLES
"""Library -> operation and operators -> a thread about a fault that no trap covers."""


def with_thread(fault: Fault, known: Sequence[KnownBug]) -> Fault:
    """The fault with the thread of its function and operator, from here or from the backend's known faults, if any."""
    own = [
        KnownBug(operation, tuple(operators), "wrong", "", thread)
        for key, thread in THREADS.get(fault.library.partition("_")[0], {}).items()
        for operation, *operators in (key.split(),)
    ]
    for operator in (f"{fault.operator}:{fault.kind}", fault.operator):
        if (here := known_bug(own, fault.operation, operator)) is not None:
            return replace(fault, thread=here.thread)
    for trap in TRAPS.get(fault.operation, ()):
        bug = known_bug(known, trap, fault.operator)
        if bug is not None and bug.thread:
            return replace(fault, thread=bug.thread)
    return fault
