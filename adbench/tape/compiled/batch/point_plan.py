"""How a signature's programs run on arrays of points: the words that `point_loops` reads."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np

from adbench.tape.compiled.batch.point_loops import FIELDS, PLAN, point_loop, run_shares
from adbench.tape.compiled.kernels.simd import WIDTH
from adbench.tape.compiled.lowering.loops.parallel_loop import LEAST_WORK, Helpers
from adbench.tape.compiled.lowering.storage import Shape
from adbench.tape.compiled.runtime.program import Program

SHARES = 4
"""Shares of the points for each thread, so that a thread that comes late does less."""
LINE = 4
"""Instructions for each line of a program, because some lines are calls of kernels."""


class Plan:
    """The words of a plan except addresses of a call's own memory.

    recordings   the number of programs when this was made; those whose results have other shapes are left out
    doubles      of memory that a call needs
    helpers      threads that help with points in lanes, if any
    """

    def __init__(self, programs: Sequence[Program], is_shared: Sequence[bool], helpers: Helpers | None) -> None:
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
            return results, status
        words = self._words(data, results, status, memory)
        first = 0
        while first < count:
            with suppress(Exception):  # the single call at this point raises the error again
                self._loop(first, count, ctypes.addressof(words))
            first = words[len(PLAN) - 1]
        return results, status

    def _words(
        self, data: Sequence[np.ndarray], results: Sequence[np.ndarray], status: bytearray, memory: int
    ) -> ctypes.Array[ctypes.c_int64]:
        """The words with the addresses of a call's memory."""
        words = type(self._template).from_buffer_copy(self._template)
        arguments, parts = self._places
        for k, start in enumerate(self._starts):
            words[k] = ctypes.addressof(words) + 8 * start
        words[3], words[4], words[5] = memory, memory + 8 * arguments, memory + 8 * parts
        words[6] = address(np.frombuffer(status, np.uint8))
        for arrays, bases in zip((data, results), self._bases, strict=False):
            for x, k in zip(arrays, bases, strict=False):
                words[k] = address(x)
        return words


def _rows(shapes: Sequence[Shape], is_shared: Sequence[bool]) -> Iterator[tuple[int, ...]]:
    """The fields of inputs or results; base is 0."""
    first = 0
    for shape, shared in zip(shapes, is_shared, strict=True):
        size = math.prod(shape)
        yield 0, size, 0 if shared else size, first, int(shape == ())
        first += size


def address(array: np.ndarray) -> int:
    """Where an array's numbers are."""
    return int(array.__array_interface__["data"][0])
