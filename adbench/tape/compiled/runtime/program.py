"""A recording as machine code."""

from __future__ import annotations

import ctypes
import gc
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from adbench.sealed_folder import SealedFolder
from adbench.tape.compiled.lowering.module import Lowered, Piece, lower
from adbench.tape.compiled.runtime.llvm import Loaded
from adbench.tape.compiled.runtime.thread_pool import helpers_for
from adbench.tape.compiled.sparse.sparse_results import Template
from adbench.tape.compiled.trace.loop_rule import SCAN
from adbench.tape.compiled.trace.record_function import Recording
from adbench.tape.compiled.trace.simplify import ADD_AT
from adbench.tape.compiled.trace.trace import made_by
from adbench.tape.core.recording import LEAF
from adbench.tape.rules import indexing
from adbench.tape.values import shape_of

LONG_PROGRAM = 10_000
"""Recordings of more nodes are compiled without optimisation: in a tenth of the time, and little slower to run."""

LONG_SCALAR_PROGRAM = 1_500
"""The same for recordings of operations on single numbers: they run at most a third slower without optimisation."""

_READ_OR_PUT = frozenset((LEAF, indexing.getitem, indexing.put, indexing.set_at, ADD_AT))


def default_level(recording: Recording) -> int:
    """The level of optimisation for the length of a recording."""
    nodes = len(recording.trace)
    if nodes > LONG_PROGRAM:
        return 0
    return 0 if nodes > LONG_SCALAR_PROGRAM and _is_scalar(recording) else 2


def _is_scalar(recording: Recording) -> bool:
    """Whether most of the work is on single numbers, with few guards."""
    elements = 0
    for record in recording.trace:
        if record[1].shape or not record[0].elementwise:
            rule, inputs, _ = made_by(record) or (LEAF, (), {})
            if rule is SCAN:
                return False
            if rule not in _READ_OR_PUT:
                elements += max(math.prod(shape_of(x)) for x in (record[1], *inputs) if x is not None)
    return 4 * elements + 20 * len(recording.guards) < len(recording.trace)


_RUN = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


@contextmanager
def without_collection() -> Iterator[None]:
    """Turn the garbage collector off in the block.

    It would scan a growing recording again and again, for a quarter of the time of recording and lowering."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


Watch = Callable[[str], AbstractContextManager[Any]] | None


@dataclass(frozen=True)
class Options:
    """The options of `compile`, with the cache opened."""

    fast_math: bool = False
    level: int | None = None
    checkpointed: bool = False
    recordings: int = 32
    watch: Watch = None
    cache: SealedFolder | None = None
    sparse: bool = False
    threads: int = 1


class Program:
    """A recording as machine code."""

    def __init__(self, recording: Recording, options: Options, timed: Callable[[str], Any]) -> None:
        self.nodes = len(recording.trace)
        self.level = default_level(recording) if options.level is None else options.level
        with timed("lower"):
            helpers = helpers_for(options.threads)
            self.lowered: Lowered = lower(recording, fast_math=options.fast_math, level=self.level, helpers=helpers)
            texts = [module.text() for module in self.lowered.modules]
        self.guards = len(recording.guards)
        recording.trace.clear()  # its records and symbols refer to each other
        with timed("compile"):
            self._loaded: list[Loaded] = []
            for module, text in zip(self.lowered.modules, texts, strict=True):
                environment = [self._address_of(thing) for thing in module.environment]
                self._loaded.append(Loaded(text, environment, level=self.level, cache=options.cache))
        self.address = self._loaded[-1].address("run")
        self.run = _RUN(self.address)
        self.rebuild = recording.rebuild
        self.values = len(recording.value)
        self.products = recording.products
        self.pattern = recording.pattern
        self.matrices = [Template(p) for p in recording.blocks]

    def _address_of(self, thing: Any) -> Any:
        return self._loaded[thing.number].address("piece") if isinstance(thing, Piece) else thing
