"""Install the fast paths of the engine, and switch them off.

Each replaces one function of the core. `install` runs when the engine is imported. `switched_off` restores the core
inside a block, so that tests can compare the results.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from adbench.tape import values
from adbench.tape.core import sweep
from adbench.tape.core.forward import Dual
from adbench.tape.core.node import Array, Recorded, Scalar
from adbench.tape.core.recording import AdjointCell, Tape
from adbench.tape.core.rule import Rule
from adbench.tape.fast import blocks, collector, dual_numbers, quick_records, quick_sweep, scalar_functions, written_out
from adbench.tape.levels import nested
from adbench.tape.machine import loading

PATHS: list[tuple[Any, str, Any]] = [
    (sweep, "PASSES", loading.PASSES),
    (Dual, "part", staticmethod(quick_sweep.careful_part)),
    (Dual, "interpret", dual_numbers.interpret),
    *((Dual, f"__{name}__", function) for name, function in dual_numbers.OPERATORS.items()),
    (Recorded, "interpret", quick_records.interpret),
    (Array, "__getitem__", quick_records.getitem),
    (Array, "shape", quick_records.shape),
    (Tape, "edges", quick_records.edges),
    (AdjointCell, "writable", quick_records.writable),
    (values, "snapshot", blocks.snapshot),
    (nested, "__enter__", collector.enter),
    (nested, "__exit__", collector.leave),
    *((Array, f"__{name}__", function) for name, function in written_out.OF_ARRAYS.items()),
    *((Scalar, f"__{name}__", function) for name, function in written_out.OF_SCALARS.items()),
    (Rule, "__call__", vars(Rule)["run"]),  # a call of a rule runs this function without a call in between
    *((rule, "run", scalar_functions.late(rule)) for rule in scalar_functions.ROWS),
]
"""Owner, attribute name, and the fast function."""

_MISSING = object()
_plain = [owner.evaluate if name == "run" else vars(owner).get(name, _MISSING) for owner, name, _ in PATHS]


def install() -> None:
    """Install the fast paths."""
    for owner, name, fast in PATHS:
        setattr(owner, name, fast)
    loading.install()
    if collector.after_collection not in gc.callbacks:
        gc.callbacks.append(collector.after_collection)


@contextmanager
def switched_off() -> Iterator[None]:
    """Run the core alone in the block, in all threads. Do not use variables made outside the block."""
    gc.callbacks.remove(collector.after_collection)
    for (owner, name, _), plain in zip(PATHS, _plain, strict=True):
        if plain is _MISSING:
            delattr(owner, name)
        else:
            setattr(owner, name, plain)
    try:
        yield
    finally:
        install()
