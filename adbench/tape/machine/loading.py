"""Load `scalar_code` once that is worth the time it takes."""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from adbench.tape.core.recording import Record
from adbench.tape.core.rule import TapeError
from adbench.tape.fast import quick_sweep

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
            install()
    return _LoadingState.refused


@contextmanager
def python_only() -> Iterator[None]:
    """Run the Python versions in the block, in all threads."""
    code, _LoadingState.code = _LoadingState.code, None
    before = PASSES[0]
    PASSES[0] = quick_sweep.sweep
    if code is not None:
        code.remove()
    try:
        yield
    finally:
        _LoadingState.code, PASSES[0] = code, before
        install()


def install() -> None:
    """Install the machine code if it is loaded, after the fast paths in Python, which it calls."""
    if _LoadingState.code is not None:
        _LoadingState.code.install()
        PASSES[0] = partial(quick_sweep.sweep, advance=_LoadingState.code.sweep)
