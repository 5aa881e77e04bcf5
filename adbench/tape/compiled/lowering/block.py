"""Lower a trace to code: choose the order of operations and their fusion into loops.

Operations on elements in registers are written as soon as their operands exist, in the order of the recording. Then
comes a call (`kernels`) or, if no call is ready, fused loops: all elementwise operations and reductions over one index
space whose operands exist or come from the same loops.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adbench.tape.compiled.kernels.kernels import KERNELS
from adbench.tape.compiled.kernels.natives import NATIVE, is_costly, kernel_of
from adbench.tape.compiled.lowering.data_movement import move, view
from adbench.tape.compiled.lowering.emission import Emission, KernelOperation
from adbench.tape.compiled.lowering.expansion import python_call
from adbench.tape.compiled.lowering.fused_groups import IN_REGISTERS, FusedGroups
from adbench.tape.compiled.lowering.loop_fusion import REDUCTIONS
from adbench.tape.compiled.lowering.machine_loops import LoopLowering
from adbench.tape.compiled.lowering.storage import REGISTER_LIMIT, Buffer, Location, Registers, Uniform
from adbench.tape.compiled.trace.loop_rule import SCAN, live
from adbench.tape.compiled.trace.recorded_forms import MOVES
from adbench.tape.compiled.trace.simplify import ADD_AT
from adbench.tape.compiled.trace.symbol import ALL, ANY, Symbol
from adbench.tape.compiled.trace.trace import Trace, made_by
from adbench.tape.core.rule import Value
from adbench.tape.machine.simd import WIDTH, Name, Simd
from adbench.tape.rules import reductions
from adbench.tape.rules.indexing import set_at

WRITTEN_INTO = frozenset((ADD_AT, set_at))
"""Rules whose result can reuse the memory of the first operand after its last use."""

FEWEST_LANES = 3
"""The fewest elements in registers that a kernel computes together."""


class Block(FusedGroups):
    """One trace, lowered to the end of the current function.

    depends   number of a symbol -> the symbols of this trace that it depends on
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
        super().__init__(emission, trace, targets or {})
        self.piece = piece
        for condition, outcome in guards:
            self.guards.setdefault(condition.number, []).append(outcome)
        self.outputs = outputs
        self.wanted = {y.number for y in outputs if type(y) is Symbol and y.tape is trace}
        self.numbers = live(trace, [*outputs, *(c for c, _ in guards)])
        self.users = defaultdict(list)
        self.uses = dict.fromkeys(self.numbers, 0)
        self.depends: dict[int, set[int]] = {}
        self.loops: dict[tuple[Any, ...], list[int]] = {}
        for n in self.numbers:
            symbol = trace[n][1]
            if id(symbol) in given:
                self.locations[n] = given[id(symbol)]
        self.given = frozenset(self.locations)  # the caller's memory
        for n in self.numbers:
            operation = None if n in self.locations else made_by(trace[n])
            if operation is not None:
                self.made[n] = operation
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
        self.find_windows()

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
            self.emission.guard(self.emission.first(self.locations[n]), outcome)

    # Elements in registers

    def operation(self, n: int) -> KernelOperation:
        """The operation, with the locations of its operands."""
        (rule, inputs, params), symbol = self.made[n], self.trace[n][1]
        locations: list[Any] = [None if x is None else self.location(x) for x in inputs]
        return KernelOperation(
            self.emission, rule, locations, params, symbol.shape, symbol.boolean, self.targets.get(n)
        )

    def in_registers(self, n: int) -> Location:
        """The elements of a small result, or a view."""
        operation = self.operation(n)
        rule, locations = operation.rule, operation.operands
        if rule.elementwise:
            return self.elementwise(operation)
        if rule in (ANY, ALL):
            op = "or" if rule is ANY else "and"
            names = self.emission.elements(locations[0])
            total = names[0] if names else self.emission.first(self.emission.constant(rule is ALL))
            for name in names[1:]:
                total = self.scalar.logic(op, total, name)
            return Registers((total,), (), True)
        if rule in REDUCTIONS:
            return self.folded(operation)
        if rule is reductions._cumsum:
            return self.running_sum(operation)
        if rule in MOVES and all(isinstance(p, Registers) or p.size <= REGISTER_LIMIT for p in locations):
            return move(operation)
        return view(operation)

    def elementwise(self, operation: KernelOperation) -> Location:
        """Compute element by element, or once if all operands are uniform."""
        rule, locations = operation.rule, operation.operands
        shape, boolean, write = operation.shape, operation.boolean, NATIVE[rule]
        if all(isinstance(p, Uniform) or p.size == 1 for p in locations):
            result = write(self.scalar, *[self.emission.first(p) for p in locations])
            if operation.size == 1:
                return Registers((result,), shape, boolean)
            return Uniform(result, shape, boolean)
        columns = []
        for p in locations:
            elements = self.emission.elements(p)
            if p.shape == shape:
                columns.append(elements)
            elif len(elements) == 1:
                columns.append(elements * math.prod(shape))
            else:
                order = np.broadcast_to(np.arange(len(elements)).reshape(p.shape), shape).ravel()
                columns.append(tuple(elements[i] for i in order))
        is_one_point = self.emission.width == 1
        if is_one_point and math.prod(shape) >= FEWEST_LANES and is_costly(rule, [column[0] for column in columns]):
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

    def folded(self, operation: KernelOperation) -> Location:
        """Reduce elements in registers, from the first to the last."""
        how, location, axes = REDUCTIONS[operation.rule], operation.operands[0], operation.params.get("axes")
        names = self.emission.elements(location)
        order = np.arange(len(names)).reshape(location.shape)
        outer = () if axes is None else tuple(a for a in range(order.ndim) if a not in axes)
        rest = tuple(a for a in range(order.ndim) if a not in outer)
        rows = np.transpose(order, outer + rest).reshape(operation.size, -1)
        totals = []
        for row in rows:
            total = names[row[0]] if len(row) else self.scalar.constant(how.start)
            for i in row[1:]:
                total = how.join(self.scalar, total, names[i])
            totals.append(total)
        return Registers(tuple(totals), operation.shape)

    def running_sum(self, operation: KernelOperation) -> Location:
        """The cumulative sum of elements in registers."""
        names, shape = list(self.emission.elements(operation.operands[0])), operation.shape
        axis = operation.params["axis"]
        lines = np.moveaxis(np.arange(len(names)).reshape(shape), axis, -1).reshape(-1, shape[axis])
        for line in lines:
            for before, i in itertools.pairwise(line):
                names[i] = self.scalar.binary("fadd", names[before], names[i])
        return Registers(tuple(names), shape)

    # Calls

    def by_kernel(self, n: int) -> None:
        """Write an operation by its kernel, or as a call into Python."""
        rule, inputs, params = self.made[n]
        if rule not in MOVES:
            self.emission.one_point_only(rule.name)
        if rule is SCAN:
            together = self.loops[_loop_key(inputs, params)]
            loop = LoopLowering(
                self.emission,
                [self.made[m][2]["loop"] for m in together],
                [self.location(x) for x in inputs],
                lambda *block: Block(*block).lower(),
            )
            for m, location in zip(together, loop.run(), strict=True):
                self.finish(m, location)
            return
        operation, result = self.operation(n), None
        self.emission.reading = inputs
        if rule in KERNELS:
            result = KERNELS[rule](operation)
        elif rule in MOVES:
            own = rule in WRITTEN_INTO and operation.target is None and self.is_last_use(inputs[0])
            result = move(operation, own)
        self.finish(n, python_call(operation) if result is None else result)

    def is_last_use(self, x: Value) -> bool:
        """Whether the current operation is the last one that reads this value or its memory."""
        if type(x) is not Symbol or x.tape is not self.trace or x.number in self.wanted or self.uses[x.number] > 1:
            return False
        return self.emission.is_unshared(self.locations[x.number])


def _loop_key(inputs: Sequence[Value], params: dict[str, Any]) -> tuple[Any, ...]:
    """The key of all operations that a single loop can compute."""
    loop = params["loop"]
    return loop.body, loop.n, loop.backwards, tuple(map(id, inputs))
