"""Loop fusion: neighbouring elementwise operations and reductions in one pass over arrays.

A `FusedLoops` is a set of operations over the same index space. It reads each element of an outside array once, keeps
intermediate values in registers, and writes only values that are used later. Axes along which all arrays are contiguous
become one axis. The last axis is processed eight elements at a time. If it is shorter, the longest axis becomes the
last.

Sums use eight partial sums, combined every few thousand elements. This is as accurate as numpy's pairwise sum, and does
not depend on the processor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from adbench.tape.compiled.kernels.natives import maximum, minimum
from adbench.tape.compiled.kernels.simd import WIDTH, Code, Name, Simd, literal
from adbench.tape.compiled.lowering.storage import Buffer, Location, Registers, Shape, Uniform, last_axis
from adbench.tape.compiled.trace.symbol_rules import ALL, ANY
from adbench.tape.core.rule import Rule
from adbench.tape.rules import reductions, shapes

BLOCK = 4096
"""Elements after which partial sums are combined."""
MASKED = 2
"""After whole vectors, a rest of more elements than this is processed as one masked vector."""


@dataclass(frozen=True)
class Reduction:
    """A reduction: its initial value and its operation."""

    start: float
    join: Callable[[Simd, Name, Name], Name]
    across: str  # LLVM's reduction of a vector


SUM = Reduction(
    0.0, lambda k, a, b: k.binary("fadd", a, b), "reassoc double @llvm.vector.reduce.fadd.v8f64(double 0.0, "
)
PRODUCT = Reduction(
    1.0, lambda k, a, b: k.binary("fmul", a, b), "reassoc double @llvm.vector.reduce.fmul.v8f64(double 1.0, "
)
MAXIMUM = Reduction(-math.inf, maximum, "")
MINIMUM = Reduction(math.inf, minimum, "")

REDUCTIONS: dict[Rule, Reduction] = {
    reductions._sum: SUM,
    shapes._sum_to: SUM,
    reductions._prod: PRODUCT,
    reductions._max: MAXIMUM,
    reductions._min: MINIMUM,
    ANY: SUM,
    ALL: SUM,
}
"""Reductions. `ANY` counts the true elements, `ALL` the false ones."""


@dataclass
class Step:
    """One operation of fused loops: `key` names its result; operands are keys of these loops, or locations."""

    key: int
    write: Callable[..., Name]
    operands: Sequence[int | Location]
    boolean: bool
    stores: list[Buffer] = field(default_factory=list)


@dataclass
class Fold:
    """A reduction of a step's result or an array into `target`, whose strides are 0 along the reduced axes.

    counts   None, or whether to count true or false elements
    """

    how: Reduction
    operand: int | Location
    target: Buffer
    counts: bool | None = None


class FusedLoops:
    """Operations over one index space, written as one loop nest."""

    def __init__(self, code: Code, shape: Shape) -> None:
        self.code = code
        self.shape = shape
        self.steps: list[Step] = []
        self.folds: list[Fold] = []

    def emit(self) -> None:
        """Write the loops."""
        if math.prod(self.shape) == 0:
            return
        arrays = self._arrays()
        lengths, strides = long_axis_last(*collapsed(self.shape, [_aligned(a, self.shape) for a in arrays]))
        self._strides = dict(zip(map(id, arrays), strides, strict=True))
        self._arrays_by_id = {id(a): a for a in arrays}
        pointers = {id(a): a.pointer(self.code) for a in arrays}
        self._outer(lengths, 0, pointers)

    def _arrays(self) -> list[Buffer]:
        found: dict[int, Buffer] = {}
        for step in self.steps:
            for x in (*step.operands, *step.stores):
                if isinstance(x, Buffer):
                    found[id(x)] = x
        for fold in self.folds:
            for y in (fold.operand, fold.target):
                if isinstance(y, Buffer):
                    found[id(y)] = y
        return list(found.values())

    def _outer(self, lengths: Sequence[int], depth: int, pointers: dict[int, Name]) -> None:
        code = self.code
        if depth < len(lengths) - 1:

            def body(i: Name) -> None:
                moved = {}
                for key, pointer in pointers.items():
                    stride = self._strides[key][depth]
                    moved[key] = pointer if stride == 0 else code.element(pointer, i, stride)
                self._outer(lengths, depth + 1, moved)

            code.loop(lengths[depth], body)
            return
        n = lengths[-1]
        if n > BLOCK and self.folds:

            def block(start: Name) -> None:
                stop = code.emit(f"add nuw nsw i64 {start}, {BLOCK}")
                full = code.emit(f"icmp ult i64 {stop}, {n}")
                stop = code.emit(f"select i1 {full}, i64 {stop}, i64 {n}")
                whole = code.emit(f"and i64 {stop}, {-WIDTH}")
                self._inner(start, whole, stop, pointers, n % WIDTH)

            code.loop(n, block, step=BLOCK)
        else:
            self._inner("0", str(n // WIDTH * WIDTH), str(n), pointers, n % WIDTH, n >= WIDTH)

    def _inner(
        self, start: Name, whole: Name, stop: Name, pointers: dict[int, Name], rest: int, has_whole: bool = True
    ) -> None:
        """Write the last axis: eight elements at a time, then the rest."""
        code = self.code
        sums: dict[int, tuple[Name, Name]] = {}
        one, many = Simd(code, 1, in_array=True), Simd(code, WIDTH)
        masked = rest > MASKED and has_whole
        has_single, has_eights = rest > 0 and not masked, has_whole
        for k, fold in enumerate(self.folds):
            if self._strides[id(fold.target)][-1] == 0:
                sums[k] = code.variable(many.real), code.variable("double")
                code.do(f"store {many.real} {many.constant(fold.how.start)}, ptr {sums[k][0]}, align 64")
                code.store(literal(fold.how.start), sums[k][1])
        fixed = {key: p for key, p in pointers.items() if self._strides[key][-1] == 0}
        loaded = {key: code.load(p) for key, p in fixed.items() if self._is_read(key)}
        if has_whole:
            code.loop(whole, lambda i: self._elements(many, i, pointers, loaded, sums), start, WIDTH)
        if rest:
            last, step = (Simd(code, WIDTH, active=rest), WIDTH) if masked else (one, 1)
            code.loop(stop, lambda i: self._elements(last, i, pointers, loaded, sums), whole, step)
        for k, (vector, single) in sums.items():
            how, target = self.folds[k].how, pointers[id(self.folds[k].target)]
            total = code.load(target)
            if has_eights:
                lanes = code.emit(f"load {many.real}, ptr {vector}, align 64")
                total = how.join(one, total, across(code, how, lanes))
            if has_single:
                total = how.join(one, total, code.load(single))
            code.store(total, target)

    def _is_read(self, key: int) -> bool:
        array = self._arrays_by_id[key]
        return any(x is array for step in self.steps for x in step.operands) or any(
            fold.operand is array for fold in self.folds
        )

    def _elements(
        self,
        k: Simd,
        i: Name,
        pointers: dict[int, Name],
        loaded: dict[int, Name],
        sums: dict[int, tuple[Name, Name]],
    ) -> None:
        """Write all operations at position i of the last axis."""
        code = self.code
        known: dict[int, Name] = {}

        def value(x: int | Location) -> Name:
            if isinstance(x, int):
                return known[x]
            key = id(x)
            if key not in known:
                known[key] = self._read(k, x, i, pointers, loaded)
            return known[key]

        for step in self.steps:
            known[step.key] = name = step.write(k, *map(value, step.operands))
            for target in step.stores:
                number = k.number(name) if step.boolean else name
                self._write(k, number, i, pointers[id(target)], self._strides[id(target)][-1])
        for number_of_fold, fold in enumerate(self.folds):
            name = value(fold.operand)
            if fold.counts is not None:
                name = k.number(name if fold.counts else k.logic("xor", name, k.truth))
            if number_of_fold in sums:
                variable = sums[number_of_fold][0 if k.width > 1 else 1]
                align = 64 if k.width > 1 else 8
                before = code.emit(f"load {k.real}, ptr {variable}, align {align}")
                after = fold.how.join(k, before, name)
                if k.mask:
                    after = code.emit(f"select {k.bit} {k.mask}, {k.real} {after}, {k.real} {before}")
                code.do(f"store {k.real} {after}, ptr {variable}, align {align}")
            else:
                pointer, stride = pointers[id(fold.target)], self._strides[id(fold.target)][-1]
                before = self._load(k, pointer, i, stride)
                self._write(k, fold.how.join(k, before, name), i, pointer, stride)

    def _read(self, k: Simd, x: Location, i: Name, pointers: dict[int, Name], loaded: dict[int, Name]) -> Name:
        if isinstance(x, Uniform):
            return k.splat(x.element, "i1" if x.boolean else "double")
        if isinstance(x, Registers):
            return k.splat(x.elements[0], "i1" if x.boolean else "double")
        number = (
            k.splat(loaded[id(x)]) if id(x) in loaded else self._load(k, pointers[id(x)], i, self._strides[id(x)][-1])
        )
        return k.compare("une", number, k.constant(0.0)) if x.boolean else number

    def _load(self, k: Simd, pointer: Name, i: Name, stride: int) -> Name:
        code = self.code
        first = code.element(pointer, i, stride)
        if k.width == 1 or stride == 1:
            return k.load(first)
        vector = "poison" if not k.mask else k.constant(1.0)
        for lane in range(k.active):
            location = code.emit(f"getelementptr inbounds double, ptr {first}, i64 {lane * stride}")
            one = code.load(location)
            vector = code.emit(f"insertelement {k.real} {vector}, double {one}, i64 {lane}")
        return vector

    def _write(self, k: Simd, number: Name, i: Name, pointer: Name, stride: int) -> None:
        code = self.code
        first = code.element(pointer, i, stride)
        if k.width == 1 or stride == 1:
            k.store(number, first)
            return
        for lane in range(k.active):
            location = code.emit(f"getelementptr inbounds double, ptr {first}, i64 {lane * stride}")
            one = code.emit(f"extractelement {k.real} {number}, i64 {lane}")
            code.store(one, location)


def sum_of(code: Code, write: Callable[..., Name], operands: Sequence[int | Location]) -> Registers:
    """The sum of write(*elements) over arrays of one shape."""
    total = code.variable("[1 x double]")
    code.store(literal(0.0), total)
    fused = FusedLoops(code, operands[0].shape)  # type: ignore[union-attr]
    fused.steps.append(Step(0, write, operands, False))
    fused.folds.append(Fold(SUM, 0, Buffer(total, 0, (0,), fused.shape)))
    fused.emit()
    return Registers((code.load(total),), ())


def across(code: Code, how: Reduction, lanes: Name) -> Name:
    """The reduction of an accumulator's eight lanes."""
    if how.across:
        name = how.across.partition("@")[2].partition("(")[0]
        code.module.declare(name, "double {}(double, <8 x double>)")
        return code.emit(f"call {how.across}<8 x double> {lanes})")
    one = Simd(code, 1)
    parts = [code.emit(f"extractelement <8 x double> {lanes}, i64 {k}") for k in range(WIDTH)]
    total = parts[0]
    for part in parts[1:]:
        total = how.join(one, total, part)
    return total


def _aligned(array: Buffer, shape: Shape) -> list[int]:
    """An array's strides, broadcast to an index space."""
    lead = len(shape) - len(array.shape)
    return [0] * lead + [0 if n == 1 else s for n, s in zip(array.shape, array.strides, strict=True)]


def collapsed(shape: Shape, strides: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """The index space with fewer axes: axes contiguous in every array are merged, axes of length 1 dropped."""
    lengths: list[int] = []
    merged: list[list[int]] = [[] for _ in strides]
    for axis, n in enumerate(shape):
        if n == 1:
            continue
        if lengths and all(k[-1] == s[axis] * n for k, s in zip(merged, strides, strict=True)):
            lengths[-1] *= n
            for k, s in zip(merged, strides, strict=True):
                k[-1] = s[axis]
        else:
            lengths.append(n)
            for k, s in zip(merged, strides, strict=True):
                k.append(s[axis])
    if not lengths:
        return [1], [[0] for _ in strides]
    return lengths, merged


def long_axis_last(lengths: list[int], strides: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """The index space in another order if its last axis is shorter than a vector: the longest axis last."""
    axis = last_axis(lengths)
    if axis == len(lengths) - 1:
        return lengths, strides
    order = [*(a for a in range(len(lengths)) if a != axis), axis]
    return [lengths[a] for a in order], [[s[a] for a in order] for s in strides]
