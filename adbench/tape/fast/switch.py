"""Install the fast paths of the engine and the machine code for scalars, and switch them off.

Each fast path replaces one function of the core. `install` runs when the engine is imported. `switched_off` restores
the core inside a block, so that tests can compare the results. `machine.scalar_code` replaces some of the fast paths
again, once that is worth the time it takes to load; `python_only` restores these inside a block.
"""

from __future__ import annotations

import gc
import math
import operator
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from adbench.tape import values
from adbench.tape.core import sweep
from adbench.tape.core.forward import Dual
from adbench.tape.core.node import Array, Recorded, Scalar
from adbench.tape.core.recording import AdjointCell, Record, Tape
from adbench.tape.core.rule import Rule, TapeError
from adbench.tape.fast import blocks, collector, dual_numbers, quick_records, quick_sweep, scalar_functions, written_out
from adbench.tape.levels import nested

# The machine code

PATIENCE = 2**19
"""Records until the machine code is loaded. In Python they take about as long as loading does."""

_lock = threading.Lock()


class _LoadingState:
    left: float = PATIENCE
    code: Any = None  # the MachineCode
    refused = ""


def counted_sweep(records: Iterable[Record], *, keep: bool = False) -> None:
    """`quick_sweep.sweep` until the machine code is loaded."""
    _LoadingState.left -= operator.length_hint(records)
    if _LoadingState.left < 0:
        load_machine_code()
    quick_sweep.sweep(records, keep=keep)


PASSES: list[Callable[..., None]] = [counted_sweep, quick_sweep.careful_sweep]


def load_machine_code() -> str:
    """Load the machine code for scalars now, instead of after 2¹⁹ records. Returns "", or why it cannot be loaded.

    Results stay the same. Call it before you time scalar code; it takes a tenth of a second and needs llvmlite.
    """
    with _lock:
        if _LoadingState.code is None and not _LoadingState.refused:
            _LoadingState.left = math.inf
            try:
                from adbench.tape.machine.scalar_code import MachineCode  # it takes a tenth of a second

                _LoadingState.code = MachineCode()
            except (ImportError, OSError, TapeError) as error:  # OSError: no LLVM library
                _LoadingState.refused = str(error)
            _install_machine_code()
    return _LoadingState.refused


def _install_machine_code() -> None:
    """Install the machine code if it is loaded, after the fast paths in Python, which it calls."""
    if _LoadingState.code is not None:
        _LoadingState.code.install()
        PASSES[0] = partial(quick_sweep.sweep, advance=_LoadingState.code.sweep)


# The fast paths

PATHS: list[tuple[Any, str, Any]] = [
    (sweep, "PASSES", PASSES),
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
    _install_machine_code()
    if collector.after_collection not in gc.callbacks:
        gc.callbacks.append(collector.after_collection)


@contextmanager
def python_only() -> Iterator[None]:
    """Run the Python versions in the block, in all threads."""
    code, before = _LoadingState.code, PASSES[0]
    _LoadingState.code, PASSES[0] = None, quick_sweep.sweep
    install()
    try:
        yield
    finally:
        _LoadingState.code, PASSES[0] = code, before
        _install_machine_code()


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
