"""`compile(..., batch=True)`: the operator at N points in one call.

The arguments have a leading axis of N points, except shared ones; so do all results. Programs on numbers and small
arrays run eight points at once, one in each SIMD lane; all others run one point after the other in machine code
(`point_loops`). Points that fit none of the recordings are recorded, as in single calls. Other points (a NaN among the
derivatives, an error, a function that cannot be recorded) run as single calls. So every point has the result of a
single call, bit for bit.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from adbench.tape.compiled.batch.point_loops import FIELDS, PLAN, point_loop, run_shares
from adbench.tape.compiled.lowering.emission import ReturnCode
from adbench.tape.compiled.lowering.loops.loop_nest import LEAST_WORK, Helpers
from adbench.tape.compiled.lowering.storage import Shape
from adbench.tape.compiled.runtime.arguments import FlatArguments, flat, nest
from adbench.tape.compiled.runtime.compiled_call import Compiled, RaisedError, Signature
from adbench.tape.compiled.runtime.entry import DispatchTable
from adbench.tape.compiled.runtime.program import CompiledProgram, CompileOptions
from adbench.tape.compiled.runtime.thread_pool import helpers_for
from adbench.tape.levels import NotCompilableError
from adbench.tape.machine.layout import DATA, layouts_are_known
from adbench.tape.machine.simd import WIDTH
from adbench.tape.trees import tree_flatten

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


DOUBLE = np.dtype(np.float64)
REMEMBERED = 1000
"""The most shapes of batches whose arguments are remembered."""


class Batched(Compiled):
    """The result of `compile` with batch=True: a function of N points that runs as machine code.

    shared   positions of the arguments that are the same at all points
    """

    def __init__(
        self,
        f: Callable[..., Any],
        example: Sequence[Any],
        operator: str,
        wrt: Any,
        options: CompileOptions,
        shared: int | Sequence[int],
    ) -> None:
        super().__init__(f, example, operator, wrt, options)
        self.shared = frozenset((shared,) if isinstance(shared, int) else shared)
        for k in self.shared:
            if not 0 <= k < len(example):
                raise ValueError(f"compile: shared: expected positions from 0 to {len(example) - 1}, got {k}")
        self.workspaces = DispatchTable()
        self._known: dict[Any, tuple[Batch, Signature]] = {}
        self._plans: dict[Any, PointPlan] = {}

    def answer(self, args: Sequence[Any]) -> Any:
        """The result at all points."""
        key = tuple([_kind(x) for x in args])
        known = self._known.get(key)
        if known is not None:
            return self._answer(known[1], known[0].at(args))
        batch = Batch(self, args)
        if batch.settings:
            self.note(f"argument {batch.settings[0]}: integers are settings, so points run as single calls")
            return self._single_calls(batch, None, range(batch.count))
        if batch.count == 0:
            return self._empty(batch)
        signature = self.signature(FlatArguments(self, batch.point(0)))
        if None not in key and not self.vectors:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[key] = batch.at(()), signature
        return self._answer(signature, batch)

    def _answer(self, signature: Signature, batch: Batch) -> Any:
        """The result: first by machine code, then, for what is left, by single calls."""
        results, others = self._evaluate(signature, batch)
        if results is None:
            return self._single_calls(batch, None, others)
        result = signature.programs[0].assembly(results)
        return self._single_calls(batch, result, others) if others else result

    def _evaluate(self, signature: Signature, batch: Batch) -> tuple[list[np.ndarray] | None, Sequence[int]]:
        """The parts of the result, and the points that need single calls."""
        if signature.eager_because:
            return None, range(batch.count)
        results: list[np.ndarray] | None = None
        others: list[int] = []
        rows: Any = range(batch.count)
        previous = -1
        while True:
            if signature.programs:
                data = batch.data if results is None else batch.rows(rows)
                parts, outcomes = self._run(signature, data, batch.is_shared, len(rows))
                if results is None:
                    results = parts
                else:
                    for whole, part in zip(results, parts, strict=True):
                        whole[rows] = part
                if outcomes == bytes(len(outcomes)):
                    return results, others
                status, rows = np.frombuffer(outcomes, np.uint8), np.asarray(rows)
                others += rows[status > ReturnCode.GUARD].tolist()
                rows = rows[status == ReturnCode.GUARD]
            if len(rows) == 0:
                return results, others
            full = len(signature.programs) >= self.options.recordings
            if full or rows[0] == previous or not self._recorded(signature, batch.point(rows[0])):
                return results, [*others, *map(int, rows)]
            previous = rows[0]

    def _recorded(self, signature: Signature, args: Sequence[Any]) -> bool:
        """Record at a point. Return False if that fails as the eager engine may handle; a single call then does."""
        with suppress(NotCompilableError, RaisedError, MemoryError):
            program = self.compiled(FlatArguments(self, args), careful=False)
            signature.programs.append(program)
            signature.dispatch.reserve(program.lowered.work)  # for single calls
            return True
        return False

    def _run(
        self, signature: Signature, data: Sequence[np.ndarray], is_shared: Sequence[bool], count: int
    ) -> tuple[list[np.ndarray], bytearray]:
        """The parts of the result at `count` points, and the outcome of each."""
        plan = self._plans.get(signature.key)
        if plan is None or plan.recordings != len(signature.programs):
            plan = self._plans[signature.key] = PointPlan(
                signature.programs, is_shared, helpers_for(self.options.threads)
            )
        self.workspaces.reserve(plan.doubles)
        memory = self.workspaces.borrow()
        try:
            return plan.run(data, count, memory)
        finally:
            self.workspaces.give_back(memory)

    # Points that run as single calls

    def _single_calls(self, batch: Batch, result: Any, points: Sequence[int]) -> Any:
        """The batch's result with that of single calls at these points."""
        filled: list[Any] | None = None if result is None else tree_flatten(result)[0]
        for i in points:
            args = batch.point(i)
            leaves, structure = flat(super().answer(args))
            if filled is None:
                filled = [np.empty((batch.count, *np.shape(x))) for x in leaves]
                result = nest(structure, filled)
            shapes = [np.shape(x)[1:] for x in filled]
            if shapes != [np.shape(x) for x in leaves]:
                raise ValueError(
                    f"{self.name}: expected results of one shape at all points, got "
                    f"{[np.shape(x) for x in leaves]} at point {i} and {shapes} at others"
                )
            for array, x in zip(filled, leaves, strict=True):
                array[i] = x
        return result

    def _empty(self, batch: Batch) -> Any:
        """The result at no point. Without a recording, its shapes come from a call at ones."""
        args = batch.ones()
        signature = self.signature(FlatArguments(self, args))
        if signature.programs:
            program = signature.programs[0]
            return program.assembly([np.empty((0, *shape)) for shape in program.lowered.results])
        leaves, structure = flat(super().answer(args))
        return nest(structure, [np.empty((0, *np.shape(x))) for x in leaves])


class Batch:
    """The arguments of one call.

    count       the number of points
    is_shared   whether all points share it, for each array or number of the data
    settings    positions of arguments with an integer for each point
    """

    def __init__(self, owner: Batched, args: Sequence[Any]) -> None:
        self.args, self.owner = args, owner
        whole = FlatArguments(owner, args)
        self.is_shared = [False] * len(whole.data)
        self.settings: list[int] = []
        places = [[p for p in slots if type(p) is int] for _, slots in whole.rebuilds]
        places.append(list(range(whole.inputs, len(whole.data))))
        self.count = -1
        for k, slots in enumerate(places):
            for p in slots:
                if k in owner.shared:
                    self.is_shared[p] = True
                    continue
                shape = np.shape(whole.data[p])
                if not shape:
                    raise ValueError(
                        f"{owner.name}: argument {k}: expected an array with a leading axis of points, got one number; "
                        f"name arguments that all points share in shared="
                    )
                if self.count not in (-1, shape[0]):
                    raise ValueError(
                        f"{owner.name}: argument {k}: expected {self.count} points on the leading axis, as in the "
                        f"arguments before, got shape {shape}"
                    )
                self.count = shape[0]
                is_data = p < whole.inputs and len(shape) == 1 and not whole.active[p]
                if is_data and np.asarray(whole.examples[p]).dtype.kind != "f":
                    self.settings.append(k)
        if self.count == -1:
            raise ValueError(f"{owner.name}: expected an argument with a leading axis of points, got none")
        self.data = [np.asarray(x) for x in whole.data]

    def at(self, args: Sequence[Any]) -> Batch:
        """This batch with other arguments of the same shapes, each one number or array of doubles."""
        other = Batch.__new__(Batch)
        other.owner, other.count, other.settings = self.owner, self.count, self.settings
        other.is_shared, other.args = self.is_shared, args
        other.data = [x if type(x) is np.ndarray else np.array(x) for x in args]
        return other

    def rows(self, points: np.ndarray) -> list[np.ndarray]:
        """The data of some points."""
        return [x if shared else x[points] for x, shared in zip(self.data, self.is_shared, strict=True)]

    def point(self, i: int) -> tuple[Any, ...]:
        """The arguments of one point."""
        return self._mapped(lambda x: x[i])

    def ones(self) -> tuple[Any, ...]:
        """Arguments of a point where all numbers are one."""
        return self._mapped(lambda x: np.ones(x.shape[1:], x.dtype)[()])

    def _mapped(self, of: Callable[[np.ndarray], Any]) -> tuple[Any, ...]:
        args = []
        for k, arg in enumerate(self.args):
            if k in self.owner.shared:
                args.append(arg)
                continue
            leaves, structure = flat(arg)
            args.append(nest(structure, [of(x) if isinstance(x, np.ndarray) else x for x in leaves]))
        return tuple(args)


def _kind(x: Any) -> Any:
    """The shape of an array of doubles, `float` for a number, or None."""
    if type(x) is float:
        return float
    is_plain = type(x) is np.ndarray and x.dtype is DOUBLE and x.flags.carray
    return x.shape if is_plain else None
