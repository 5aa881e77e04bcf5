"""Loops of a program as loops of the machine.

The state of a turn lies in registers where it is small, else in two memories that take turns. Where its history is
asked for (a reverse sweep reads the states from the last to the first), the history itself is that memory: turn k reads
row k and writes row k + 1, and nothing is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from adbench.tape.compiled.kernels.kernels import row_of
from adbench.tape.compiled.kernels.simd import Name
from adbench.tape.compiled.lowering.emission import Emission
from adbench.tape.compiled.lowering.expansion import expanded
from adbench.tape.compiled.lowering.loop_fusion import loop, moved_by
from adbench.tape.compiled.lowering.storage import (
    SMALL,
    Big,
    Place,
    Shape,
    Small,
    Uniform,
    row_by_row,
    size_of,
    store_elements,
)
from adbench.tape.compiled.trace.loop_rule import Body, Loop

LowerBlock = Callable[..., list[Place]]
"""(emission, trace, outputs, given, targets) -> the places of the outputs: what writes the code of a loop's body."""


def lower_loop(
    emission: Emission, wanted: Sequence[Loop], places: Sequence[Place], lower_block: LowerBlock
) -> list[Place]:
    """Writes a loop once for all that is wanted of it: its last state, histories of parts of its states."""
    return _Lowering(emission, wanted, places, lower_block).run()


def _with_code(body: Body) -> Body:
    """The body, with as many of its rules as possible in a form that has code."""
    inputs = (body.counter, *body.state, *body.rows, *body.captures)
    trace, leaves, outputs = expanded(body.trace, inputs, body.outputs)
    if trace is body.trace:
        return body
    a, b = 1 + len(body.state), 1 + len(body.state) + len(body.rows)
    return Body(trace, leaves[0], tuple(leaves[1:a]), tuple(leaves[a:b]), tuple(leaves[b:]), tuple(outputs))


class _Lowering:
    """One loop."""

    def __init__(
        self, emission: Emission, wanted: Sequence[Loop], places: Sequence[Place], lower_block: LowerBlock
    ) -> None:
        self.emission = emission
        self.lower_block = lower_block
        self.code = emission.code
        self.wanted = wanted
        self.first = wanted[0]
        self.body = _with_code(self.first.body)
        self.start, self.rows, self.captures = self.first.split(places)
        self.shapes = self.first.shapes
        sizes = [size_of(s) for s in self.shapes]
        self.at = [sum(sizes[:k]) for k in range(len(sizes))]
        self.size = sum(sizes)
        n = self.first.n
        self.histories = {w.keep: emission.room((n + 1, w.keep[1] - w.keep[0])) for w in wanted if w.keep is not None}
        self.full = self.histories.get((0, self.size))
        has_big = any(size > SMALL for size in sizes)
        self.pair = None
        if self.full is None and has_big:
            self.pair = emission.room((self.size,)), emission.room((self.size,))
        self.variables = {
            k: [self.code.variable("double") for _ in range(size)] for k, size in enumerate(sizes) if size <= SMALL
        }

    def run(self) -> list[Place]:
        """Writes it, and says where what is wanted is."""
        emission, code, n = self.emission, self.code, self.first.n
        for k, place in enumerate(self.start):
            self.begin(k, place)
        shared = dict(emission.computed)
        rows = [None if isinstance(x, Uniform) else emission.in_memory(x) for x in self.rows]
        turn = code.variable("ptr"), code.variable("ptr")
        if self.pair is not None:
            for variable, array in zip(turn, self.pair, strict=True):
                code.do(f"store ptr {self.pointer(array, 0)}, ptr {variable}, align 8")

        def body(k: Name) -> None:
            counter = code.emit(f"sub i64 {n - 1}, {k}") if self.first.backwards else k
            number = code.emit(f"sitofp i64 {counter} to double")
            now, following = self.memory(k, turn)
            given: dict[int, Place] = {id(self.body.counter): Small((number,), ())}
            for j, symbol in enumerate(self.body.state):
                given[id(symbol)] = self.part(j, now)
            for symbol, x, array in zip(self.body.rows, self.rows, rows, strict=True):
                given[id(symbol)] = self.uniform_row(x) if array is None else row_of(emission, array, counter)
            given |= {id(s): p for s, p in zip(self.body.captures, self.captures, strict=True)}
            targets = {}
            for j, y in enumerate(self.body.outputs):
                number_of = getattr(y, "number", None)
                if j not in self.variables and number_of is not None and number_of not in targets:
                    targets[number_of] = Big(following, self.at[j], row_by_row(self.shapes[j]), self.shapes[j])
            results = self.lower_block(emission, self.body.trace, self.body.outputs, given, targets)
            self.end_turn(k, results, following, targets)
            if self.pair is not None:
                code.do(f"store ptr {following}, ptr {turn[0]}, align 8")
                code.do(f"store ptr {now}, ptr {turn[1]}, align 8")

        loop(code, "0", str(n), 1, body)
        emission.computed = shared
        return [self.result(w) for w in self.wanted]

    def uniform_row(self, x: Place) -> Place:
        """A row of an array that is the same everywhere."""
        shape = x.shape[1:]
        element = x.element if isinstance(x, Uniform) else ""
        return Small((element,) * size_of(shape), shape) if size_of(shape) <= SMALL else Uniform(element, shape)

    def pointer(self, array: Big, offset: int) -> Name:
        """The address of an entry."""
        return self.code.emit(f"getelementptr inbounds double, ptr {array.base}, i64 {array.offset + offset}")

    def begin(self, k: int, place: Place) -> None:
        """The first state."""
        if k in self.variables:
            names = self.emission.elements(place)
            for variable, name in zip(self.variables[k], names, strict=True):
                self.code.do(f"store double {name}, ptr {variable}, align 8")
        else:
            home = self.full or self.pair[0]  # type: ignore[index]
            self.emission.copy(place, self.within(home, k))
        for keep, history in self.histories.items():
            if keep is not None and history is not self.full:
                self.keep_part(k, place, history, keep, "0")
        if self.full is not None and k in self.variables:
            self.keep_part(k, place, self.full, (0, self.size), "0")

    def within(self, packed: Big, k: int) -> Big:
        """Part k of a packed state in memory."""
        return Big(packed.base, packed.offset + self.at[k], row_by_row(self.shapes[k]), self.shapes[k])

    def keep_part(self, k: int, place: Place, history: Big, keep: tuple[int, int], row: Name) -> None:
        """Writes part k, as far as it is kept, into a row of a history."""
        start, stop = max(self.at[k], keep[0]), min(self.at[k] + size_of(self.shapes[k]), keep[1])
        if start >= stop:
            return
        base = moved_by(self.code, self.pointer(history, start - keep[0]), row, history.strides[0])
        shape: Shape = (stop - start,)
        target = Big(base, 0, (1,), shape)
        first = start - self.at[k]
        if isinstance(place, Small):
            store_elements(self.code, place.elements[first : first + shape[0]], target)
        elif isinstance(place, Uniform):
            self.emission.copy(Uniform(place.element, shape), target)
        else:
            array = self.emission.contiguous(place)
            self.emission.copy(Big(array.base, array.offset + first, (1,), shape), target)

    def memory(self, k: Name, turn: tuple[Name, Name]) -> tuple[Name, Name]:
        """Where the state of this turn begins, and that of the next."""
        if self.full is not None:
            now = moved_by(self.code, self.pointer(self.full, 0), k, self.full.strides[0])
            return now, self.code.emit(f"getelementptr inbounds double, ptr {now}, i64 {self.full.strides[0]}")
        if self.pair is None:
            return "null", "null"
        now, following = (self.code.emit(f"load ptr, ptr {v}, align 8") for v in turn)
        return now, following

    def part(self, j: int, now: Name) -> Place:
        """Part j of this turn's state."""
        shape = self.shapes[j]
        if j in self.variables:
            names = tuple(self.code.emit(f"load double, ptr {v}, align 8") for v in self.variables[j])
            return Small(names, shape)
        return Big(now, self.at[j], row_by_row(shape), shape)

    def end_turn(self, k: Name, results: Sequence[Place], following: Name, targets: dict[int, Big]) -> None:
        """The state of the next turn."""
        row = self.code.emit(f"add i64 {k}, 1")
        for j, place in enumerate(results):
            if j in self.variables:
                names = self.emission.elements(place)
                place = Small(names, self.shapes[j])
                for variable, name in zip(self.variables[j], names, strict=True):
                    self.code.do(f"store double {name}, ptr {variable}, align 8")
            else:
                target = Big(following, self.at[j], row_by_row(self.shapes[j]), self.shapes[j])
                if place != target:
                    self.emission.copy(place, target)
                place = target
            for keep, history in self.histories.items():
                if keep is not None and (history is not self.full or j in self.variables):
                    self.keep_part(j, place, history, keep, row)

    def result(self, wanted: Loop) -> Place:
        """The last state packed, or a history."""
        if wanted.keep is not None:
            history = self.histories[wanted.keep]
            if size_of(history.shape) <= SMALL:
                return Small(self.emission.elements(history), history.shape)
            return history
        shape = (self.size,)
        if self.size <= SMALL:
            names = [
                self.code.emit(f"load double, ptr {v}, align 8")
                for k in sorted(self.variables)
                for v in self.variables[k]
            ]
            return Small(tuple(names), shape)
        if self.full is not None:
            return Big(self.full.base, self.full.offset + self.first.n * self.size, (1,), shape)
        last = self.pair[self.first.n % 2] if self.pair is not None else self.emission.room(shape)
        for k, variables in self.variables.items():
            names = [self.code.emit(f"load double, ptr {v}, align 8") for v in variables]
            store_elements(self.code, names, self.within(last, k))
        return last
