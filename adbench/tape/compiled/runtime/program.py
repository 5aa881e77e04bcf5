"""A recording as machine code."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from adbench.sealed_folder import SealedFolder
from adbench.tape.compiled.lowering.module import Lowered, Piece, lower
from adbench.tape.compiled.runtime.llvm import Loaded
from adbench.tape.compiled.sparse.sparse_results import Template
from adbench.tape.compiled.trace.record_function import Recording

LONG_PROGRAM = 10_000
"""Recordings of more nodes are compiled without optimisation: in a tenth of the time, and little slower to run."""


def default_level(recording: Recording) -> int:
    """The level of optimisation for the length of a recording."""
    return 0 if len(recording.trace) > LONG_PROGRAM else 2


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


class Program:
    """A recording as machine code."""

    def __init__(self, recording: Recording, options: Options, timed: Callable[[str], Any]) -> None:
        self.nodes = len(recording.trace)
        self.level = default_level(recording) if options.level is None else options.level
        with timed("lower"):
            self.lowered: Lowered = lower(recording, fast_math=options.fast_math, level=self.level)
            texts = [module.text() for module in self.lowered.modules]
        with timed("compile"):
            self._loaded: list[Loaded] = []
            for module, text in zip(self.lowered.modules, texts, strict=True):
                environment = [self._address_of(thing) for thing in module.environment]
                self._loaded.append(Loaded(text, environment, level=self.level, cache=options.cache))
        self.address = self._loaded[-1].address("run")
        self.run = _RUN(self.address)
        self.rebuild = recording.rebuild
        self.values = len(recording.value)
        self.guards = len(recording.guards)
        self.products = recording.products
        self.pattern = recording.pattern
        self.matrices = [Template(p) for p in recording.blocks]

    def _address_of(self, thing: Any) -> Any:
        return self._loaded[thing.number].address("piece") if isinstance(thing, Piece) else thing
