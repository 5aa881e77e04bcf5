"""Choose which operations share loops.

Fused loops hold all elementwise operations and reductions over one index space whose operands exist or come from the
same loops. Three forms make them cheaper:

* The adjoint of x[1:] adds a vector to a longer one, one element later. It joins the loops as an operation on earlier
  results (`Delayed`), so a sum over neighbours and its gradient take one pass without stored intermediates.
* A sum of -x or c x is -1 or c times the sum of x, and equal sums are one. Unless c is a constant of at least 1, a sum
  of large x could overflow although that of c x does not. Then the careful program runs, which leaves c in the sum.
* A quotient that is read only by products and sums in the same loops, as z = (y - μ) / σ, is a product with 1/σ.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from adbench.tape.compiled.kernels.natives import NATIVE, native
from adbench.tape.compiled.lowering.data_movement import is_view, keeps_axes
from adbench.tape.compiled.lowering.emission import Emission
from adbench.tape.compiled.lowering.loop_fusion import REDUCTIONS
from adbench.tape.compiled.lowering.loops.fused_steps import FARTHEST, SUM, Delayed, Fold, FusedStep, Operand
from adbench.tape.compiled.lowering.storage import REGISTER_LIMIT, Buffer, Location, Registers, Shape, Uniform
from adbench.tape.compiled.lowering.value_locations import ValueLocations
from adbench.tape.compiled.trace.recorded_forms import MOVES
from adbench.tape.compiled.trace.simplify import ADD_AT
from adbench.tape.compiled.trace.symbol import ALL, ANY, Symbol
from adbench.tape.compiled.trace.trace import Trace
from adbench.tape.core.rule import Rule, Value
from adbench.tape.rules import elementwise, reductions, shapes
from adbench.tape.rules.indexing import put
from adbench.tape.values import shape_of

IN_REGISTERS, ELEMENTWISE, FOLD, KERNEL = range(4)

ORDERED = (reductions._sum, shapes._sum_to, reductions._prod)
"""Reductions whose rounding depends on the order of the elements, which is fixed."""

_PRODUCTS = frozenset((elementwise.multiply, elementwise.negative, elementwise.square))


@dataclass
class _Sum:
    """A sum as the product of a sign, numbers, and the sum of another operation.

    may_overflow   whether it can be infinite although the sum of products is not
    """

    of: Value
    sign: float = 1.0
    factors: list[Value] = field(default_factory=list)
    may_overflow: bool = False


class FusedGroups(ValueLocations):
    """The part of `Block` that forms fused loops.

    made      number of a symbol -> rule, inputs and parameters that compute it; no entry for a given value
    users     number of a symbol -> the operations that read it
    remaining number of a symbol -> the operands that do not exist yet
    ready     operations whose operands exist, by kind
    targets   number of a symbol -> the preferred memory of its value, if fused loops or a call compute it
    windows   operations that add a vector into a longer one -> the number of elements by which they move it
    """

    def __init__(self, emission: Emission, trace: Trace, targets: dict[int, Buffer]) -> None:
        super().__init__(emission)
        self.trace = trace
        self.targets = targets
        self.guards: dict[int, list[bool]] = {}
        self.made: dict[int, tuple[Rule, tuple[Value, ...], dict[str, Any]]] = {}
        self.users: dict[int, list[int]] = {}
        self.remaining: dict[int, int] = {}
        self.ready: list[list[int]] = [[], [], [], []]
        self.windows: dict[int, int] = {}
        self.related: dict[Shape, set[Shape]] = {}

    def finish(self, n: int, location: Location) -> None:
        """Record the location of a result."""
        raise NotImplementedError

    def in_registers(self, n: int) -> Location:
        """The elements of a small result, or a view."""
        raise NotImplementedError

    def kind(self, n: int) -> int:
        """The kind of code for an operation."""
        rule, inputs, params = self.made[n]
        if rule in NATIVE and not self.trace[n][1].shape:
            return IN_REGISTERS
        if rule.elementwise and native(rule) is not None:
            return ELEMENTWISE if math.prod(self.trace[n][1].shape) > REGISTER_LIMIT else IN_REGISTERS
        has_buffer = any(x is not None and math.prod(shape_of(x)) > REGISTER_LIMIT for x in inputs)
        if rule in REDUCTIONS:
            return FOLD if has_buffer else IN_REGISTERS
        if is_view(rule, params):
            return IN_REGISTERS
        has_buffer = has_buffer or math.prod(self.trace[n][1].shape) > REGISTER_LIMIT
        if not has_buffer and (rule is reductions._cumsum or rule in MOVES):
            return IN_REGISTERS
        return KERNEL

    # The choice of operations

    def find_windows(self) -> None:
        """Find the operations that add a vector into one that is little longer."""
        for n, (rule, inputs, params) in self.made.items():
            v, shape = inputs[-1], self.trace[n][1].shape
            if rule not in (put, ADD_AT) or len(shape) != 1 or type(v) is not Symbol or len(v.shape) != 1:
                continue
            index = params["index"]
            index = index[0] if type(index) is tuple and len(index) == 1 else index
            if type(index) is not slice or v.boolean or v.shape[0] <= REGISTER_LIMIT:
                continue
            start, stop, step = index.indices(shape[0])
            if step == 1 and stop - start == v.shape[0] >= shape[0] - FARTHEST:
                self.windows[n] = start
                self.related.setdefault(v.shape, set()).add(shape)
                self.related.setdefault(shape, set()).add(v.shape)

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
        spaces = {space} | self.related.get(space, set())
        if len(spaces) > 1 and max(spaces)[0] - min(spaces)[0] > FARTHEST:
            spaces = {space}
        members = [n for n in (*each, *fold) if self.space(n) in spaces]
        chosen = set(members)
        missing: dict[int, int] = {}
        for n in members:  # it grows in the loop
            if self.kind(n) == FOLD:
                continue
            for user in self.users[n]:
                missing[user] = missing.get(user, self.remaining[user]) - 1
                fits = self.kind(user) in (ELEMENTWISE, FOLD) or user in self.windows
                if missing[user] == 0 and user not in chosen and fits and self.space(user) in spaces:
                    members.append(user)
                    chosen.add(user)
        least = min(self.space(n) for n in members)
        chosen -= {n for n in members if self.made[n][0] in ORDERED and self.space(n) != least}
        each[:] = [n for n in each if n not in chosen]
        fold[:] = [n for n in fold if n not in chosen]
        heapq.heapify(each)
        heapq.heapify(fold)
        self.emit_fused(sorted(chosen), chosen)

    def is_uniform(self, n: int) -> bool:
        """Whether all operands are the same in all elements."""
        locations = [self.location(x) for x in self.made[n][1]]
        return all(isinstance(p, Uniform) or p.size == 1 for p in locations)

    def space(self, n: int) -> Shape:
        """The index space of an operation."""
        rule, inputs, _ = self.made[n]
        return shape_of(inputs[0]) if rule in REDUCTIONS else self.trace[n][1].shape

    # Their code

    def emit_fused(self, members: Sequence[int], chosen: set[int]) -> None:
        """Write the loops of these operations."""
        self.emission.one_point_only("loops over arrays")
        spaces = {self.space(n) for n in members}
        fused = self.emission.fused_loops(max(spaces))
        results: dict[int, Location] = {}
        folds: list[tuple[int, Buffer, _Sum]] = []  # with the memory of the result
        targets: dict[Any, Buffer] = {}  # the same, of sums

        def operand(x: Value) -> int | Location:
            if type(x) is Symbol and x.number in chosen:
                return x.number
            location = self.location(x)
            many = isinstance(location, Registers) and location.size > 1
            return self.emission.in_memory(location) if many else location

        def moved(n: int, v: Symbol, length: int) -> Delayed:
            """The vector that operation n adds into a longer one."""
            key = v.number
            if key not in chosen:
                key = -1 - n
                fused.steps.append(FusedStep(key, NATIVE[elementwise.positive], [operand(v)], length=length))
            return Delayed(key, self.windows[n], 0.0 if self.made[n][0] is put else -0.0)

        for n in members:
            rule, inputs, params = self.made[n]
            symbol = self.trace[n][1]
            if rule in REDUCTIONS:
                total = self.scaled(inputs[0], chosen, n)
                key = operand(total.of), rule in (ANY, ALL), rule, params.get("axes"), symbol.shape
                out = targets.get(key[:1] + key[3:]) if REDUCTIONS[rule] is SUM and not key[1] else None
                if out is None:
                    target, out = self.fold_target(n, self.space(n), params.get("axes"), symbol.shape)
                    self.fill(target, REDUCTIONS[rule].start, symbol.shape)
                    counts = {ANY: True, ALL: False}.get(rule)
                    length = self.space(n)[0] if len(spaces) > 1 else 0
                    fused.folds.append(Fold(REDUCTIONS[rule], key[0], target, counts, length))
                    if REDUCTIONS[rule] is SUM and not key[1] and isinstance(key[0], int):
                        targets[key[:1] + key[3:]] = out
                folds.append((n, out, total))
                continue
            length = symbol.shape[0] if len(spaces) > 1 else 0
            operands: list[Operand]
            if n in self.windows and rule not in NATIVE:
                write = NATIVE[elementwise.add if rule is ADD_AT else elementwise.positive]
                v: Any = inputs[-1]
                operands = [*map(operand, inputs[:-1]), moved(n, v, v.shape[0])]
            else:
                write, operands = NATIVE[rule], [operand(x) for x in inputs]
            is_product = rule in (elementwise.multiply, elementwise.square)
            step = FusedStep(n, write, operands, symbol.boolean, length=length, multiplies=is_product)
            if rule is elementwise.divide:
                step.divides = "product" if self.enters_only_sums(n, chosen) else "exact"
            if self.is_stored(n, chosen):
                out = self.targets.get(n) or self.emission.allocate(
                    symbol.shape, symbol.boolean, for_vectors=self.is_read_by_loops(n)
                )
                step.stores.append(out)
                results[n] = out
            else:
                results[n] = Uniform("poison", symbol.shape)  # read only inside these loops
            fused.steps.append(step)
        fused.emit()
        for n, full, total in folds:
            results[n] = self.reduced(n, full, total)
        for n in members:
            self.remaining[n] = -1
        for n in members:
            self.finish(n, results[n])

    def is_stored(self, n: int, chosen: set[int]) -> bool:
        """Whether an operation's result is used outside of these loops."""
        return n in self.wanted or n in self.guards or any(u not in chosen for u in self.users[n])

    def is_read_by_loops(self, n: int) -> bool:
        """Whether only fused loops read a value, or a view of it."""

        def is_loop(user: int) -> bool:
            rule, inputs, params = self.made[user]
            is_moved = is_view(rule, params)
            if rule is shapes._reshape:
                is_moved = keeps_axes(shape_of(inputs[0]), self.trace[user][1].shape)
            return self.kind(user) in (ELEMENTWISE, FOLD) or (is_moved and self.is_read_by_loops(user))

        return n not in self.wanted and all(map(is_loop, self.users[n]))

    def enters_only_sums(self, n: int, chosen: set[int]) -> bool:
        """Whether a result is only multiplied and summed in these loops, so its last bit moves no step or kink."""
        if self.is_stored(n, chosen):
            return False
        for user in self.users[n]:
            rule = self.made[user][0]
            if REDUCTIONS.get(rule) is SUM and rule not in (ANY, ALL):
                continue
            if rule not in _PRODUCTS or not self.enters_only_sums(user, chosen):
                return False
        return True

    # Sums

    def scaled(self, x: Value, chosen: set[int], n: int) -> _Sum:
        """The sum of x, with signs and numbers taken out."""
        total = _Sum(x)
        rule = self.made[n][0]
        if REDUCTIONS[rule] is not SUM or rule in (ANY, ALL) or math.prod(self.trace[n][1].shape) > REGISTER_LIMIT:
            return total
        while type(total.of) is Symbol and total.of.number in chosen:
            rule, inputs, _ = self.made[total.of.number]
            if rule is elementwise.negative:
                total.sign, total.of = -total.sign, inputs[0]
                continue
            numbers = [v for v in inputs if shape_of(v) == ()]
            if rule is elementwise.multiply and len(numbers) == 1:
                # Whether the sum times this number overflows only where a sum of products does, or nobody cares
                is_safe = self.emission.fast_math or (type(numbers[0]) is float and abs(numbers[0]) >= 1.0)
                if is_safe or not self.emission.careful:
                    total.may_overflow = total.may_overflow or not is_safe
                    total.factors.append(numbers[0])
                    (total.of,) = (v for v in inputs if shape_of(v) != ())
                    continue
            break
        return total

    def reduced(self, n: int, full: Buffer, total: _Sum) -> Location:
        """The result of a reduction."""
        shape = self.trace[n][1].shape
        if self.trace[n][1].boolean:
            condition = "une" if self.made[n][0] is ANY else "oeq"
            count = self.emission.first(full)
            return Registers((self.scalar.compare(condition, count, self.scalar.constant(0.0)),), shape, True)
        result = self.emission.result(full)
        if not isinstance(result, Registers):
            return result
        names = list(result.elements)
        for factor in reversed(total.factors):  # the innermost first, as in the elements
            by = self.emission.first(self.location(factor))
            names = [self.scalar.binary("fmul", name, by) for name in names]
        if total.may_overflow:
            self.emission.leave_unless_finite(names)
        if total.sign < 0:
            names = [(-self.scalar.x(name)).name for name in names]
        return Registers(tuple(names), shape)

    def fold_target(self, n: int, space: Shape, axes: Any, shape: Shape) -> tuple[Buffer, Buffer]:
        """Memory for a reduction's result: with strides over the index space, and as the result."""
        folded = set(range(len(space))) if axes is None else set(axes)
        outer = tuple(m for a, m in enumerate(space) if a not in folded)
        count = math.prod(shape)
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
        flat = Buffer.packed(target.base, target.offset, (math.prod(shape),))
        self.emission.fill(flat, self.scalar.constant(start))
