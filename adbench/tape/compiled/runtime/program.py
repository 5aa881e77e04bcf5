"""A recording as machine code."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from adbench.sealed_folder import SealedFolder
from adbench.tape.compiled.lowering.emission import NotInLanesError, Piece
from adbench.tape.compiled.lowering.module import Lowered, lower
from adbench.tape.compiled.runtime.thread_pool import helpers_for
from adbench.tape.compiled.sparse.sparsity import Template
from adbench.tape.compiled.trace.loop_rule import SCAN, nodes_with_bodies
from adbench.tape.compiled.trace.record_function import Recording
from adbench.tape.compiled.trace.simplify import ADD_AT
from adbench.tape.compiled.trace.trace import made_by
from adbench.tape.core.recording import LEAF
from adbench.tape.machine.llvm import Loaded
from adbench.tape.machine.simd import WIDTH
from adbench.tape.rules import indexing
from adbench.tape.values import shape_of

LONG_PROGRAM = 10_000
"""Recordings of more nodes are compiled without optimisation: in a tenth of the time, and little slower to run."""

LONG_SCALAR_PROGRAM = 1_500
"""The limit for operations on single numbers, whose programs run at most a third slower without optimisation."""

_READ_OR_PUT = frozenset((LEAF, indexing.getitem, indexing.put, indexing.set_at, ADD_AT))


def default_level(recording: Recording) -> int:
    """The level of optimisation for the length of a recording, with the bodies of its loops."""
    nodes = nodes_with_bodies(recording.trace)
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


Watch = Callable[[str], AbstractContextManager[Any]] | None


@dataclass(frozen=True)
class CompileOptions:
    """The options of `compile`, with the cache opened."""

    fast_math: bool = False
    level: int | None = None
    checkpointed: bool = False
    recordings: int = 32
    watch: Watch = None
    cache: SealedFolder | None = None
    sparse: bool = False
    threads: int = 1
    batch: bool = False
    eager: bool = True


class LoweredMachineCode:
    """The function `run` of lowered code, compiled when its address is first needed."""

    def __init__(self, lowered: Lowered, level: int, options: CompileOptions, timed: Callable[[str], Any]) -> None:
        self.lowered = lowered
        self._texts = [module.text() for module in lowered.modules]
        self._level, self._cache, self._timed = level, options.cache, timed
        self._loaded: list[Loaded] = []

    @cached_property
    def address(self) -> int:
        """Where `run` is."""
        with self._timed("compile"):
            for module, text in zip(self.lowered.modules, self._texts, strict=True):
                environment = [
                    self._loaded[thing.number].address("piece") if isinstance(thing, Piece) else thing
                    for thing in module.environment
                ]
                self._loaded.append(Loaded(text, environment, level=self._level, cache=self._cache))
        self._texts.clear()
        return self._loaded[-1].address("run")


class CompiledProgram:
    """A recording as machine code.

    lanes      the code for several points, one in each SIMD lane; None if it runs one point at a time
    way        says which of the two, and why
    assembly   forms the result from its parts
    """

    assembly: Any  # an `Assembly`, whose module imports this one

    def __init__(
        self, recording: Recording, options: CompileOptions, timed: Callable[[str], Any], *, lanes: bool = False
    ) -> None:
        self.nodes = len(recording.trace)
        self.level = default_level(recording) if options.level is None else options.level
        with timed("lower"):
            helpers = helpers_for(options.threads)
            self.lowered: Lowered = lower(recording, fast_math=options.fast_math, level=self.level, helpers=helpers)
            self._code = LoweredMachineCode(self.lowered, self.level, options, timed)
            self.lanes, self.way = self._in_lanes(recording, options, timed) if lanes else (None, "")
        self.guards = len(recording.guards)
        recording.trace.clear()  # its records and symbols refer to each other
        _ = (self.lanes or self._code).address
        self.rebuild = recording.rebuild
        self.values = len(recording.value)
        self.products = recording.products
        self.pattern = recording.pattern
        self.matrices = [Template(p) for p in recording.blocks]

    @property
    def address(self) -> int:
        """Where the function `run` is."""
        return self._code.address

    @cached_property
    def run(self) -> Callable[..., int]:
        """The function for one point."""
        return _RUN(self.address)

    def _in_lanes(
        self, recording: Recording, options: CompileOptions, timed: Callable[[str], Any]
    ) -> tuple[LoweredMachineCode | None, str]:
        try:
            lowered = lower(recording, fast_math=options.fast_math, level=self.level, width=WIDTH)
        except NotInLanesError as reason:
            return None, f"points run one after the other in machine code, because of {reason}"
        return LoweredMachineCode(
            lowered, self.level, options, timed
        ), f"{WIDTH} points run at once, one in each SIMD lane"
