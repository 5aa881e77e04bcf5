"""How a signature's programs run on arrays of points: the words that `point_loops` reads."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np

from adbench.tape.compiled.batch.point_loops import FIELDS, PLAN, point_loop, run_shares
from adbench.tape.compiled.lowering.loops.loop_nest import LEAST_WORK, Helpers
from adbench.tape.compiled.lowering.storage import Shape
from adbench.tape.compiled.runtime.program import CompiledProgram
from adbench.tape.machine.layout import DATA, layouts_are_known
from adbench.tape.machine.simd import WIDTH

SHARES = 4
"""Shares of the points for each thread, so that a thread that comes late does less."""
ANY_ERROR = suppress(Exception)  # of a rule called in Python, which may be a user's
"""The single call at a point raises its error again."""
NEXT = PLAN.index("next")
"""The place of the last word."""
LINE = 4
"""Instructions for each line of a program, because some lines are calls of kernels."""


class PointPlan:
    """The words of a plan except addresses of a call's own memory.

    recordings   the number of programs when this was made; those whose results have other shapes are left out
    doubles      of memory that a call needs
    helpers      threads that help with points in lanes, if any
    """

    def __init__(self, programs: Sequence[CompiledProgram], is_shared: Sequence[bool], helpers: Helpers | None) -> None:
        self.recordings = len(programs)
        inputs = programs[0].lowered.inputs
        self.results: tuple[Shape, ...] = programs[0].lowered.results
        programs = [p for p in programs if p.lowered.results == self.results]
        lanes = [p.lanes for p in programs if p.lanes is not None]
        in_lanes = len(lanes) == len(programs)
        self._loop = point_loop(lanes=in_lanes)
        if in_lanes:
            arguments, parts = WIDTH * sum(map(math.prod, inputs)), WIDTH * sum(map(math.prod, self.results))
            work, addresses = WIDTH * max(p.lowered.work for p in lanes), [p.address for p in lanes]
        else:
            arguments, parts = -(-len(inputs) // 8) * 8, -(-len(self.results) // 8) * 8
            work, addresses = max(p.lowered.work for p in programs), [p.address for p in programs]
        self._places = arguments, arguments + parts
        self.helpers = helpers if in_lanes else None
        self._each = arguments + parts + work
        self.doubles = self._each * (SHARES * (helpers.count + 1) if self.helpers and helpers else 1)
        self._work = LINE * max(p.lowered.instructions for p in programs) / WIDTH
        tables: list[list[tuple[int, ...]]] = [
            [*_rows(inputs, is_shared)],
            [*_rows(self.results, [False] * len(self.results))],
            [(address,) for address in addresses],
        ]
        words, self._starts = [0] * len(PLAN), []
        for rows in tables:
            self._starts.append(len(words) + 1)
            words += [len(rows), *(word for row in rows for word in row)]
        self._template = (ctypes.c_int64 * len(words))(*words)
        self._bases = [range(start, len(words), len(FIELDS)) for start in self._starts]
        self._spare: list[ctypes.Array[ctypes.c_int64]] = []  # words of earlier calls
        self._kept = programs

    def run(self, data: Sequence[np.ndarray], count: int, memory: int) -> tuple[list[np.ndarray], bytearray]:
        """The parts of the result, and each point's outcome."""
        results = [np.empty((count, *shape)) for shape in self.results]
        status = bytearray(count)
        if self.helpers is not None and count * self._work >= LEAST_WORK and count >= 2 * WIDTH:
            shares = min(SHARES * (self.helpers.count + 1), count // WIDTH)
            size = -(-count // (shares * WIDTH)) * WIDTH
            shares = -(-count // size)
            plans = [self._words(data, results, status, memory + 8 * self._each * k) for k in range(shares)]
            table = (ctypes.c_int64 * (2 + shares))(count, size, *map(ctypes.addressof, plans))
            run_shares(ctypes.addressof(table), shares, self.helpers)
            self._spare += plans
            return results, status
        words = self._words(data, results, status, memory)
        first, run, at = 0, self._loop, ctypes.addressof(words)
        while first < count:
            with ANY_ERROR:
                run(first, count, at)
            first = words[NEXT]
        self._spare.append(words)
        return results, status

    def _words(
        self, data: Sequence[np.ndarray], results: Sequence[np.ndarray], status: bytearray, memory: int
    ) -> ctypes.Array[ctypes.c_int64]:
        """The words with the addresses of a call's memory."""
        try:
            words = self._spare.pop()
        except IndexError:
            words = type(self._template).from_buffer_copy(self._template)
            at = ctypes.addressof(words)
            words[0:3] = [at + 8 * start for start in self._starts]
        arguments, parts = self._places
        place = ctypes.addressof(ctypes.c_char.from_buffer(status))
        words[3:NEXT] = [memory, memory + 8 * arguments, memory + 8 * parts, place]
        inputs, outputs, _ = self._bases
        for x, k in zip(data, inputs, strict=False):
            words[k] = address(x)
        for x, k in zip(results, outputs, strict=False):
            words[k] = address(x)
        return words


def _rows(shapes: Sequence[Shape], is_shared: Sequence[bool]) -> Iterator[tuple[int, ...]]:
    """The fields of inputs or results; base is 0."""
    first = 0
    for shape, shared in zip(shapes, is_shared, strict=True):
        size = math.prod(shape)
        yield 0, size, 0 if shared else size, first, int(shape == ())
        first += size


def _address_by_numpy(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def _address_by_layout(array: np.ndarray) -> int:
    return ctypes.c_int64.from_address(id(array) + DATA).value


address = _address_by_layout if layouts_are_known() else _address_by_numpy
"""Where an array's numbers are; from numpy's object, it takes a fifth of the time."""
