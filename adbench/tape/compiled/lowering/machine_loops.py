"""Lower loops of a program to loops in machine code.

A small state is kept in registers, a large one in a matrix: iteration k reads row k and writes row k + 1, without a
copy. The matrix is the history, if that is needed (a reverse sweep reads the states from last to first). Otherwise it
has two rows, which alternate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from adbench.tape.compiled.kernels.kernels import row_of
from adbench.tape.compiled.lowering.emission import Emission
from adbench.tape.compiled.lowering.expansion import expanded
from adbench.tape.compiled.lowering.storage import REGISTER_LIMIT, Buffer, Location, Registers, Shape, Uniform
from adbench.tape.compiled.trace.loop_rule import Body, Loop
from adbench.tape.compiled.trace.symbol import Symbol
from adbench.tape.compiled.trace.trace import made_by
from adbench.tape.core.rule import Value
from adbench.tape.machine.simd import WIDTH, Code, Name
from adbench.tape.rules import shapes

LowerBlock = Callable[..., list[Location]]
"""The function that lowers a loop's body: (emission, trace, outputs, given, targets) -> locations of the outputs."""


def _with_code(body: Body) -> Body:
    """The body with as many native rules as possible."""
    inputs = (body.counter, *body.state, *body.rows, *body.captures)
    trace, leaves, outputs = expanded(body.trace, inputs, body.outputs)
    if trace is body.trace:
        return body
    a, b = 1 + len(body.state), 1 + len(body.state) + len(body.rows)
    return Body(trace, leaves[0], tuple(leaves[1:a]), tuple(leaves[a:b]), tuple(leaves[b:]), tuple(outputs))


def _reshaped(y: Value) -> Symbol | None:
    """The symbol whose elements these are, in the same order."""
    while type(y) is Symbol:
        operation = made_by(y.tape[y.number])
        if operation is None or operation[0] is not shapes._reshape:
            return y
        y = operation[1][0]
    return None


@dataclass(eq=False)
class LoopLowering:
    """A loop, written once for all its results: its last state, and histories of parts of its states."""

    emission: Emission
    wanted: Sequence[Loop]
    locations: Sequence[Location]
    lower_block: LowerBlock

    def __post_init__(self) -> None:
        emission, wanted = self.emission, self.wanted
        self.first = wanted[0]
        self.body = _with_code(self.first.body)
        self.start, self.rows, self.captures = self.first.split(self.locations)
        self.shapes = self.first.shapes
        sizes = [math.prod(s) for s in self.shapes]
        self.at = [sum(sizes[:k]) for k in range(len(sizes))]
        self.size = sum(sizes)
        n = self.first.n
        self.histories: dict[tuple[int, int], Buffer] = {
            w.keep: emission.allocate((n + 1, w.keep[1] - w.keep[0])) for w in wanted if w.keep is not None
        }
        self.full = self.histories.get((0, self.size))
        aligned = 0 if self.size <= REGISTER_LIMIT else -(-self.size // WIDTH) * WIDTH
        self.states = self.full or (emission.allocate((2, aligned)) if aligned else Buffer.packed("null", 0, (2, 0)))
        self.variables = {
            k: [self.code.variable("double") for _ in range(size)]
            for k, size in enumerate(sizes)
            if size <= REGISTER_LIMIT
        }

    @property
    def code(self) -> Code:
        """The current function."""
        return self.emission.code

    def run(self) -> list[Location]:
        """Write the loop and return the locations of its results."""
        emission, code, n = self.emission, self.code, self.first.n
        for j, location in enumerate(self.start):
            self.put(j, location, self.states, "0")
        shared = dict(emission.computed)
        rows = [x if isinstance(x, Uniform) else emission.in_memory(x) for x in self.rows]

        def body(k: Name) -> None:
            counter = code.emit(f"sub i64 {n - 1}, {k}") if self.first.backwards else k
            number = code.emit(f"sitofp i64 {counter} to double")
            self.iteration(k, number, [row_of(emission, x, counter) for x in rows])

        code.loop(n, body)
        emission.computed = shared
        return [self.result(w) for w in self.wanted]

    def iteration(self, k: Name, number: Name, rows: Sequence[Location]) -> None:
        """Write iteration k; `number` is the counter as a double."""
        row = self.code.emit(f"add i64 {k}, 1")
        now, following = self.state(k), self.state(row)
        locations: dict[int, Location] = {id(self.body.counter): Registers((number,), ())}
        for j, symbol in enumerate(self.body.state):
            is_small = j in self.variables
            locations[id(symbol)] = Registers(self.get_variables(j), symbol.shape) if is_small else self.within(now, j)
        locations |= {id(s): x for s, x in zip(self.body.rows, rows, strict=True)}
        locations |= {id(s): p for s, p in zip(self.body.captures, self.captures, strict=True)}
        targets = {}
        for j, y in enumerate(self.body.outputs):
            source = _reshaped(y)
            if j not in self.variables and source is not None and source.number not in targets:
                targets[source.number] = Buffer.packed(following.base, self.at[j], source.shape)
        results = self.lower_block(self.emission, self.body.trace, self.body.outputs, locations, targets)
        for j, location in enumerate(results):
            self.put(j, location, following, row)

    def put(self, j: int, location: Location, state: Buffer, row: Name) -> None:
        """Store part j of a state; `state` is its memory, and `row` its number in histories."""
        if j in self.variables:
            location = Registers(self.emission.elements(location), self.shapes[j])
            for variable, name in zip(self.variables[j], location.elements, strict=True):
                self.code.store(name, variable)
        else:
            target = self.within(state, j)
            if location != target:
                self.emission.copy(location, target)
            location = target
        for keep, history in self.histories.items():
            if history is not self.full or j in self.variables:
                self.keep_part(j, location, history, keep, row)

    def get_variables(self, k: int) -> tuple[Name, ...]:
        """Part k of the state, read from its variables."""
        return tuple(map(self.code.load, self.variables[k]))

    def within(self, packed: Buffer, k: int) -> Buffer:
        """Part k of a packed state in memory."""
        return Buffer.packed(packed.base, packed.offset + self.at[k], self.shapes[k])

    def keep_part(self, k: int, location: Registers | Buffer, into: Buffer, keep: tuple[int, int], row: Name) -> None:
        """Write the recorded entries of part k into a row of a history."""
        start, stop = max(self.at[k], keep[0]), min(self.at[k] + math.prod(self.shapes[k]), keep[1])
        if start >= stop:
            return
        base = self.code.element(into.pointer(self.code, start - keep[0]), row, into.strides[0])
        shape: Shape = (stop - start,)
        target = Buffer(base, 0, (1,), shape)
        first = start - self.at[k]
        if isinstance(location, Registers):
            self.emission.store(location.elements[first : first + shape[0]], target)
        else:
            self.emission.copy(Buffer(location.base, location.offset + first, (1,), shape), target)

    def state(self, row: Name) -> Buffer:
        """The packed state before the iteration of this number, as far as it is in memory."""
        if len(self.variables) == len(self.shapes):
            return self.states
        if self.full is None:
            row = self.code.emit(f"and i64 {row}, 1")
        base = self.code.element(self.states.pointer(self.code), row, self.states.strides[0])
        return Buffer.packed(base, 0, self.states.shape[1:])

    def result(self, wanted: Loop) -> Location:
        """The packed last state, or a history."""
        if wanted.keep is not None:
            return self.emission.result(self.histories[wanted.keep])
        shape = (self.size,)
        if self.size <= REGISTER_LIMIT:
            return Registers(tuple(n for k in sorted(self.variables) for n in self.get_variables(k)), shape)
        row = self.first.n if self.full is not None else self.first.n % 2
        last = Buffer.packed(self.states.base, self.states.offset + row * self.states.strides[0], shape)
        for k in self.variables if self.full is None else ():
            self.emission.store(self.get_variables(k), self.within(last, k))
        return last
