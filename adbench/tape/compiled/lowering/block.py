"""Lower a trace to code: choose the order of operations and their fusion into loops.

Operations on elements in registers are written as soon as their operands exist, in the order of the recording. Then
comes a call (`kernels`) or, if no call is ready, fused loops: all elementwise operations and reductions over one index
space whose operands exist or come from the same loops.
"""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adbench.tape.compiled.kernels.kernels import KERNELS
from adbench.tape.compiled.kernels.natives import NATIVE, is_costly, kernel_of, native
from adbench.tape.compiled.kernels.simd import WIDTH, Name, Simd
from adbench.tape.compiled.lowering.data_movement import is_view, move, moves_elements, view
from adbench.tape.compiled.lowering.emission import Emission, Operation
from adbench.tape.compiled.lowering.loop_fusion import REDUCTIONS, Fold, FusedLoops, Reduction, Step
from adbench.tape.compiled.lowering.machine_loops import lower_loop
from adbench.tape.compiled.lowering.python_calls import python_call
from adbench.tape.compiled.lowering.storage import (
    REGISTER_LIMIT,
    Buffer,
    Location,
    Registers,
    Shape,
    Uniform,
    size_of,
)
from adbench.tape.compiled.lowering.value_locations import ValueLocations
from adbench.tape.compiled.trace.loop_rule import SCAN, live
from adbench.tape.compiled.trace.simplify import ADD_AT
from adbench.tape.compiled.trace.symbol import Symbol
from adbench.tape.compiled.trace.symbol_rules import ALL, ANY
from adbench.tape.compiled.trace.trace import Trace, made_by
from adbench.tape.core.rule import Rule, Value
from adbench.tape.rules import reductions, shapes
from adbench.tape.rules.indexing import set_at
from adbench.tape.values import shape_of

WRITTEN_INTO = frozenset((ADD_AT, set_at))
"""Rules whose result can reuse the memory of the first operand after its last use."""

FEWEST_LANES = 3
"""The fewest elements in registers that a kernel computes together."""

IN_REGISTERS, ELEMENTWISE, FOLD, KERNEL = range(4)


class Block(ValueLocations):
    """One trace, lowered to the end of the current function.

    made      number of a symbol -> rule, inputs and parameters that compute it; no entry for a given value
    depends   number of a symbol -> the symbols of this trace that it depends on
    targets   number of a symbol -> the preferred memory of its value, if fused loops or a call compute it
    """

    def __init__(
        self,
        emission: Emission,
        trace: Trace,
        outputs: Sequence[Value],
        given: dict[int, Location],
        targets: dict[int, Buffer] | None = None,
        guards: Sequence[tuple[Symbol, bool]] = (),
        piece: int = 0,
    ) -> None:
        super().__init__(emission)
        self.piece = piece
        self.trace = trace
        self.targets = targets or {}
        self.guards: dict[int, list[bool]] = {}
        for condition, outcome in guards:
            self.guards.setdefault(condition.number, []).append(outcome)
        self.outputs = outputs
        self.wanted = {y.number for y in outputs if type(y) is Symbol and y.tape is trace}
        self.numbers = live(trace, [*outputs, *(c for c, _ in guards)])
        self.users: defaultdict[int, list[int]] = defaultdict(list)
        self.remaining: dict[int, int] = {}
        self.uses = dict.fromkeys(self.numbers, 0)
        self.made: dict[int, tuple[Rule, tuple[Value, ...], dict[str, Any]]] = {}
        self.depends: dict[int, set[int]] = {}
        self.ready: list[list[int]] = [[], [], [], []]
        self.loops: dict[tuple[Any, ...], list[int]] = {}
        for n in self.numbers:
            symbol = trace[n][1]
            if id(symbol) in given:
                self.locations[n] = given[id(symbol)]
        self.given = frozenset(self.locations)  # the caller's memory
        for n in self.numbers:
            made = None if n in self.locations else made_by(trace[n])
            if made is not None:
                self.made[n] = made
        self.is_straight = all(self.kind(n) == IN_REGISTERS for n in self.made)
        if not self.is_straight:
            self.wait()

    def wait(self) -> None:
        """Note what each operation waits for."""
        for n, (rule, inputs, params) in self.made.items():
            depends = self.depends[n] = {x.number for x in inputs if type(x) is Symbol and x.tape is self.trace}
            missing = 0
            for d in depends:
                self.users[d].append(n)
                self.uses[d] += 1
                missing += d not in self.given
            self.remaining[n] = missing
            if missing == 0:
                heapq.heappush(self.ready[self.kind(n)], n)
            if rule is SCAN:
                self.loops.setdefault(_loop_key(inputs, params), []).append(n)

    def kind(self, n: int) -> int:
        """The kind of code for an operation."""
        rule, inputs, params = self.made[n]
        if rule in NATIVE and not self.trace[n][1].shape:
            return IN_REGISTERS
        if rule.elementwise and native(rule) is not None:
            return ELEMENTWISE if size_of(self.trace[n][1].shape) > REGISTER_LIMIT else IN_REGISTERS
        has_buffer = any(x is not None and size_of(shape_of(x)) > REGISTER_LIMIT for x in inputs)
        if rule in REDUCTIONS:
            return FOLD if has_buffer else IN_REGISTERS
        if is_view(rule, params):
            return IN_REGISTERS
        has_buffer = has_buffer or size_of(self.trace[n][1].shape) > REGISTER_LIMIT
        if not has_buffer and (rule is reductions._cumsum or moves_elements(rule)):
            return IN_REGISTERS
        return KERNEL

    # The order

    def lower(self) -> list[Location]:
        """Write all operations and return the locations of the outputs."""
        for n in list(self.locations):
            if self.piece:
                self.define(n)
            self.check(n)
        if self.is_straight:
            self.straight()
        light, each, fold, kernel = self.ready
        while light or each or fold or kernel:
            if light:
                n = heapq.heappop(light)
                if n in self.locations:
                    continue
                for m in (n, *self.partners(n)):
                    self.finish(m, self.in_registers(m))
                if self.piece and len(self.code.lines) > self.piece:
                    self.cut()
            elif kernel:
                n = heapq.heappop(kernel)
                if n not in self.locations:
                    self.by_kernel(n)
            else:
                self.fuse()
        return [self.location(y) for y in self.outputs]

    def straight(self) -> None:
        """Write a program without loops and calls of kernels, in the order of the recording."""
        uses = self.uses
        for n, (_, inputs, _) in self.made.items():
            for x in inputs:
                if type(x) is Symbol:
                    uses[x.number] = n
        for n, (rule, inputs, _) in self.made.items():
            symbol = self.trace[n][1]
            if symbol.shape == () and rule in NATIVE:
                name = NATIVE[rule](self.scalar, *[self.number(x) for x in inputs])
                self.locations[n] = Registers((name,), (), symbol.boolean)
            else:
                self.locations[n] = self.in_registers(n)
            self.define(n)
            if n in self.guards:
                self.check(n)
            self.done = n
            if self.piece and len(self.code.lines) > self.piece:
                self.cut()

    def partners(self, n: int) -> list[int]:
        """Operations that the same kernel computes from the same operand, such as the cosine with the sine."""
        rule, inputs, _ = self.made[n]
        kernel = kernel_of(rule)
        if kernel is None or kernel.results == 1 or type(inputs[0]) is not Symbol or inputs[0].tape is not self.trace:
            return []
        users = self.users[inputs[0].number]
        return [m for m in users if m != n and m not in self.locations and kernel_of(self.made[m][0]) is kernel]

    def finish(self, n: int, location: Location) -> None:
        """Record the location of a result; operations that waited for it may become ready."""
        self.locations[n] = location
        if isinstance(location, Buffer):
            self.emission.retain(location)
        self.define(n)
        if n in self.guards:
            self.check(n)
        for user in self.users[n]:
            self.remaining[user] -= 1
            if self.remaining[user] == 0:
                heapq.heappush(self.ready[self.kind(user)], user)
        for d in self.depends[n]:
            self.uses[d] -= 1
            if self.uses[d] == 0 and d not in self.wanted and d not in self.given:
                self.emission.release(self.locations[d])

    def check(self, n: int) -> None:
        """Leave the function if a guard does not hold."""
        for outcome in self.guards.pop(n, ()):
            location = self.locations[n]
            name = self.emission.elements(location)[0]
            leave = self.code.leave_unless if outcome else self.code.leave_if
            leave(name, self.emission.leave_on_guard())

    # Elements in registers

    def in_registers(self, n: int) -> Location:
        """The elements of a small result, or a view."""
        rule, inputs, params = self.made[n]
        shape = self.trace[n][1].shape
        locations = [self.location(x) for x in inputs]
        if rule.elementwise:
            return self.elementwise(rule, locations, shape, self.trace[n][1].boolean)
        if rule in REDUCTIONS and rule not in (ANY, ALL):
            return self.folded(REDUCTIONS[rule], locations[0], params.get("axes"), shape)
        if rule in (ANY, ALL):
            op = "or" if rule is ANY else "and"
            names = self.emission.elements(locations[0])
            total = names[0] if names else ("false" if rule is ANY else "true")
            for name in names[1:]:
                total = self.scalar.logic(op, total, name)
            return Registers((total,), (), True)
        if rule is reductions._cumsum:
            return self.running_sum(locations[0], params["axis"], shape)
        if moves_elements(rule) and all(isinstance(p, Registers) or p.size <= REGISTER_LIMIT for p in locations):
            return move(Operation(self.emission, locations, params, shape), rule)
        return view(self.emission, rule, locations[0], params, shape)

    def elementwise(self, rule: Rule, locations: Sequence[Location], shape: Shape, boolean: bool) -> Location:
        """Compute element by element, or once if all operands are uniform."""
        write = NATIVE[rule]
        if all(isinstance(p, Uniform) or p.size == 1 for p in locations):
            names = [p.element if isinstance(p, Uniform) else self.emission.elements(p)[0] for p in locations]
            result = write(self.scalar, *names)
            if size_of(shape) == 1:
                return Registers((result,), shape, boolean)
            return Uniform(result, shape, boolean)
        columns = []
        for p in locations:
            given = self.emission.elements(p)
            if p.shape == shape:
                columns.append(given)
            elif len(given) == 1:
                columns.append(given * size_of(shape))
            else:
                order = np.broadcast_to(np.arange(len(given)).reshape(p.shape), shape).ravel()
                columns.append(tuple(given[i] for i in order))
        if size_of(shape) >= FEWEST_LANES and is_costly(rule, [column[0] for column in columns]):
            return Registers(self.in_lanes(write, columns), shape, boolean)
        return Registers(tuple(write(self.scalar, *row) for row in zip(*columns, strict=True)), shape, boolean)

    def in_lanes(self, write: Callable[..., Name], columns: Sequence[Sequence[Name]]) -> tuple[Name, ...]:
        """Apply a kernel to elements eight at a time; the bits are those of one at a time."""
        many, names = Simd(self.code, WIDTH), []
        for start in range(0, len(columns[0]), WIDTH):
            parts = [column[start : start + WIDTH] for column in columns]
            result = write(many, *(many.vector(part) for part in parts))
            names += [self.code.emit(f"extractelement {many.real} {result}, i64 {k}") for k in range(len(parts[0]))]
        return tuple(names)

    def folded(self, how: Reduction, location: Location, axes: Any, shape: Shape) -> Location:
        """Reduce elements in registers, from the first to the last."""
        names = self.emission.elements(location)
        order = np.arange(len(names)).reshape(location.shape)
        outer = () if axes is None else tuple(a for a in range(order.ndim) if a not in axes)
        rest = tuple(a for a in range(order.ndim) if a not in outer)
        rows = np.transpose(order, outer + rest).reshape(size_of(shape), -1)
        totals = []
        for row in rows:
            total = names[row[0]] if len(row) else self.scalar.constant(how.start)
            for i in row[1:]:
                total = how.join(self.scalar, total, names[i])
            totals.append(total)
        return Registers(tuple(totals), shape)

    def running_sum(self, location: Location, axis: int, shape: Shape) -> Location:
        """The cumulative sum of elements in registers."""
        names = list(self.emission.elements(location))
        lines = np.moveaxis(np.arange(len(names)).reshape(shape), axis, -1).reshape(-1, shape[axis])
        for line in lines:
            for before, i in itertools.pairwise(line):
                names[i] = self.scalar.binary("fadd", names[before], names[i])
        return Registers(tuple(names), shape)

    # Calls

    def by_kernel(self, n: int) -> None:
        """Write an operation by its kernel, or as a call into Python."""
        rule, inputs, params = self.made[n]
        if rule is SCAN:
            together = self.loops[_loop_key(inputs, params)]
            results = lower_loop(
                self.emission,
                [self.made[m][2]["loop"] for m in together],
                [self.location(x) for x in inputs],
                lambda *block: Block(*block).lower(),
            )
            for m, location in zip(together, results, strict=True):
                self.finish(m, location)
            return
        symbol = self.trace[n][1]
        kernel = KERNELS.get(rule)
        locations: list[Any] = [None if x is None else self.location(x) for x in inputs]
        operation = Operation(self.emission, locations, params, symbol.shape, self.targets.get(n))
        result = None
        self.emission.reading = inputs
        if kernel is not None:
            result = kernel(operation)
        elif moves_elements(rule):
            own = rule in WRITTEN_INTO and self.targets.get(n) is None and self.is_last_use(inputs[0])
            result = move(operation, rule, own)
        if result is None:
            result = python_call(operation, rule, symbol.boolean)
        self.finish(n, result)

    def is_last_use(self, x: Value) -> bool:
        """Whether the current operation is the last one that reads this value or its memory."""
        if type(x) is not Symbol or x.tape is not self.trace or x.number in self.wanted or self.uses[x.number] > 1:
            return False
        return self.emission.is_unshared(self.locations[x.number])

    # Loop fusion

    def fuse(self) -> None:
        """Write all operations over one index space that can share its loops."""
        _, each, fold, _ = self.ready
        first = min([*each[:1], *fold[:1]])
        space = self.space(first)
        for n in [n for n in each if self.is_uniform(n)]:
            each.remove(n)
            heapq.heapify(each)
            self.finish(n, self.in_registers(n))
            return
        members = [n for n in (*each, *fold) if self.space(n) == space]
        chosen = set(members)
        missing: dict[int, int] = {}
        for n in members:  # it grows in the loop
            if self.kind(n) != ELEMENTWISE:
                continue
            for user in self.users[n]:
                missing[user] = missing.get(user, self.remaining[user]) - 1
                fits = missing[user] == 0 and user not in chosen and self.kind(user) in (ELEMENTWISE, FOLD)
                if fits and self.space(user) == space:
                    members.append(user)
                    chosen.add(user)
        each[:] = [n for n in each if n not in chosen]
        fold[:] = [n for n in fold if n not in chosen]
        heapq.heapify(each)
        heapq.heapify(fold)
        self.emit_fused(space, sorted(members), chosen)

    def is_uniform(self, n: int) -> bool:
        """Whether all operands are the same in all elements."""
        locations = [self.location(x) for x in self.made[n][1]]
        return all(isinstance(p, Uniform) or p.size == 1 for p in locations)

    def space(self, n: int) -> Shape:
        """The index space of an operation."""
        rule, inputs, _ = self.made[n]
        return shape_of(inputs[0]) if rule in REDUCTIONS else self.trace[n][1].shape

    def emit_fused(self, space: Shape, members: Sequence[int], chosen: set[int]) -> None:
        """Write the loops of these operations."""
        fused = FusedLoops(self.code, space)
        results: dict[int, Location] = {}
        folds: list[tuple[int, Buffer]] = []  # with the memory of the result

        def operand(x: Value) -> int | Location:
            if type(x) is Symbol and x.number in chosen:
                return x.number
            location = self.location(x)
            many = isinstance(location, Registers) and location.size > 1
            return self.emission.in_memory(location) if many else location

        for n in members:
            rule, inputs, params = self.made[n]
            symbol = self.trace[n][1]
            if rule in REDUCTIONS:
                target, out = self.fold_target(n, space, params.get("axes"), symbol.shape)
                self.fill(target, REDUCTIONS[rule].start, symbol.shape)
                counts = {ANY: True, ALL: False}.get(rule)
                fused.folds.append(Fold(REDUCTIONS[rule], operand(inputs[0]), target, counts))
                folds.append((n, out))
                continue
            step = Step(n, NATIVE[rule], [operand(x) for x in inputs], symbol.boolean)
            if n in self.wanted or any(u not in chosen for u in self.users[n]) or n in self.guards:
                out = self.targets.get(n) or self.emission.allocate(
                    symbol.shape, symbol.boolean, for_vectors=self.is_read_by_loops(n)
                )
                step.stores.append(out)
                results[n] = out
            else:
                results[n] = Uniform("poison", symbol.shape)  # read only inside these loops
            fused.steps.append(step)
        fused.emit()
        for n, full in folds:
            shape = self.trace[n][1].shape
            results[n] = self.emission.result(full)
            if self.trace[n][1].boolean:
                condition = "une" if self.made[n][0] is ANY else "oeq"
                count = self.emission.elements(full)[0]
                results[n] = Registers((self.scalar.compare(condition, count, self.scalar.constant(0.0)),), shape, True)
        for n in members:
            self.remaining[n] = -1
        for n in members:
            self.finish(n, results[n])

    def is_read_by_loops(self, n: int) -> bool:
        """Whether only fused loops read a value, or a view of it."""

        def is_loop(user: int) -> bool:
            rule, _, params = self.made[user]
            is_moved = is_view(rule, params) and rule is not shapes._reshape
            return self.kind(user) in (ELEMENTWISE, FOLD) or (is_moved and self.is_read_by_loops(user))

        return n not in self.wanted and all(map(is_loop, self.users[n]))

    def fold_target(self, n: int, space: Shape, axes: Any, shape: Shape) -> tuple[Buffer, Buffer]:
        """Memory for a reduction's result: with strides over the index space, and as the result."""
        folded = set(range(len(space))) if axes is None else set(axes)
        outer = tuple(m for a, m in enumerate(space) if a not in folded)
        count = size_of(shape)
        out = self.targets.get(n)
        if count <= REGISTER_LIMIT:
            out = Buffer.packed(self.code.variable(f"[{max(count, 1)} x double]"), 0, shape)
        elif out is None or not out.is_contiguous:
            out = self.emission.allocate(shape, for_vectors=self.is_read_by_loops(n))
        long = iter([step for step, m in zip(out.strides, shape, strict=True) if m != 1])
        steps = iter([0 if m == 1 else next(long) for m in outer])
        strides = tuple(0 if a in folded else next(steps) for a in range(len(space)))
        return Buffer(out.base, out.offset, strides, space), out

    def fill(self, target: Buffer, start: float, shape: Shape) -> None:
        """Set a target to a reduction's initial value."""
        flat = Buffer.packed(target.base, target.offset, (size_of(shape),))
        self.emission.fill(flat, self.scalar.constant(start))


def _loop_key(inputs: Sequence[Value], params: dict[str, Any]) -> tuple[Any, ...]:
    """The key of all operations that a single loop can compute."""
    loop = params["loop"]
    return loop.body, loop.n, loop.backwards, tuple(map(id, inputs))
