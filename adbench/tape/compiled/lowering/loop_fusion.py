"""Loops over the elements of arrays: neighbouring elementwise operations and reductions in one pass.

A `Nest` is a set of operations that run over the same index space. It reads every array from outside once for each
element, keeps what is in between in registers, and writes only what is needed later. Axes along which all arrays lie
in one line become one axis; the last axis is taken eight elements at a time.

Sums are kept in eight partial sums and added up every few thousand elements, which is as careful as numpy's pairwise
sum, and does not depend on the processor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from adbench.tape.compiled.kernels.natives import maximum, minimum
from adbench.tape.compiled.kernels.simd import WIDTH, Code, Lanes, Name, literal
from adbench.tape.compiled.lowering.storage import Big, Place, Shape, Small, Uniform, size_of

BLOCK = 4096
"""Elements after which partial sums are added up."""
MASKED = 2
"""Behind eights, more elements than these are taken at once, as an eight in which some lanes do not count."""


@dataclass(frozen=True)
class Reduction:
    """How elements are put together: the value to begin with, and the operation."""

    start: float
    join: Callable[[Lanes, Name, Name], Name]
    across: str  # LLVM's reduction of a vector


SUM = Reduction(
    0.0, lambda k, a, b: k.binary("fadd", a, b), "reassoc double @llvm.vector.reduce.fadd.v8f64(double 0.0, "
)
PRODUCT = Reduction(
    1.0, lambda k, a, b: k.binary("fmul", a, b), "reassoc double @llvm.vector.reduce.fmul.v8f64(double 1.0, "
)
MAXIMUM = Reduction(-math.inf, maximum, "")
MINIMUM = Reduction(math.inf, minimum, "")


@dataclass
class Step:
    """One operation of a nest: key names its result, operands are keys of the nest or places outside of it."""

    key: int
    write: Callable[..., Name]
    operands: Sequence[int | Place]
    boolean: bool
    stores: list[Big] = field(default_factory=list)


@dataclass
class Fold:
    """A reduction of a step's result, or of an array, into `target`, whose strides are 0 along the axes folded.

    counts   None, or which booleans are counted, true or false ones
    """

    how: Reduction
    operand: int | Place
    target: Big
    counts: bool | None = None


class Nest:
    """Operations over one index space, to be emitted as loops."""

    def __init__(self, code: Code, shape: Shape) -> None:
        self.code = code
        self.shape = shape
        self.steps: list[Step] = []
        self.folds: list[Fold] = []

    def emit(self) -> None:
        """Writes the loops."""
        if size_of(self.shape) == 0:
            return
        arrays = self._arrays()
        lengths, strides = collapsed(self.shape, [_aligned(a, self.shape) for a in arrays])
        self._strides = dict(zip(map(id, arrays), strides, strict=True))
        self._arrays_by_id = {id(a): a for a in arrays}
        pointers = {id(a): _start(self.code, a) for a in arrays}
        self._outer(lengths, 0, pointers)

    def _arrays(self) -> list[Big]:
        found: dict[int, Big] = {}
        for step in self.steps:
            for x in (*step.operands, *step.stores):
                if isinstance(x, Big):
                    found[id(x)] = x
        for fold in self.folds:
            for y in (fold.operand, fold.target):
                if isinstance(y, Big):
                    found[id(y)] = y
        return list(found.values())

    def _outer(self, lengths: Sequence[int], depth: int, pointers: dict[int, Name]) -> None:
        code = self.code
        if depth < len(lengths) - 1:

            def body(i: Name) -> None:
                moved = {}
                for key, pointer in pointers.items():
                    stride = self._strides[key][depth]
                    moved[key] = pointer if stride == 0 else moved_by(code, pointer, i, stride)
                self._outer(lengths, depth + 1, moved)

            loop(code, "0", str(lengths[depth]), 1, body)
            return
        n = lengths[-1]
        if n > BLOCK and self.folds:

            def block(start: Name) -> None:
                stop = code.emit(f"add nuw nsw i64 {start}, {BLOCK}")
                full = code.emit(f"icmp ult i64 {stop}, {n}")
                stop = code.emit(f"select i1 {full}, i64 {stop}, i64 {n}")
                whole = code.emit(f"and i64 {stop}, {-WIDTH}")
                self._inner(start, whole, stop, pointers, n % WIDTH)

            loop(code, "0", str(n), BLOCK, block)
        else:
            self._inner("0", str(n // WIDTH * WIDTH), str(n), pointers, n % WIDTH, n >= WIDTH)

    def _inner(
        self, start: Name, whole: Name, stop: Name, pointers: dict[int, Name], rest: int, has_whole: bool = True
    ) -> None:
        """The last axis: eight at a time, then the rest."""
        code = self.code
        sums: dict[int, tuple[Name, Name]] = {}
        one, many = Lanes(code, 1, in_array=True), Lanes(code, WIDTH)
        masked = rest > MASKED and has_whole
        has_single, has_eights = rest > 0 and not masked, has_whole
        for k, fold in enumerate(self.folds):
            if self._strides[id(fold.target)][-1] == 0:
                sums[k] = code.variable(many.real), code.variable("double")
                code.do(f"store {many.real} {many.constant(fold.how.start)}, ptr {sums[k][0]}, align 64")
                code.do(f"store double {literal(fold.how.start)}, ptr {sums[k][1]}, align 8")
        fixed = {key: p for key, p in pointers.items() if self._strides[key][-1] == 0}
        loaded = {key: code.emit(f"load double, ptr {p}, align 8") for key, p in fixed.items() if self._is_read(key)}
        if has_whole:
            loop(code, start, whole, WIDTH, lambda i: self._elements(many, i, pointers, loaded, sums))
        if rest:
            last, step = (Lanes(code, WIDTH, active=rest), WIDTH) if masked else (one, 1)
            loop(code, whole, stop, step, lambda i: self._elements(last, i, pointers, loaded, sums))
        for k, (vector, single) in sums.items():
            how, target = self.folds[k].how, pointers[id(self.folds[k].target)]
            total = code.emit(f"load double, ptr {target}, align 8")
            if has_eights:
                lanes = code.emit(f"load {many.real}, ptr {vector}, align 64")
                total = how.join(one, total, across(code, how, lanes))
            if has_single:
                total = how.join(one, total, code.emit(f"load double, ptr {single}, align 8"))
            code.do(f"store double {total}, ptr {target}, align 8")

    def _is_read(self, key: int) -> bool:
        array = self._arrays_by_id[key]
        return any(x is array for step in self.steps for x in step.operands) or any(
            fold.operand is array for fold in self.folds
        )

    def _elements(
        self,
        k: Lanes,
        i: Name,
        pointers: dict[int, Name],
        loaded: dict[int, Name],
        sums: dict[int, tuple[Name, Name]],
    ) -> None:
        """All operations at place i of the last axis."""
        code = self.code
        known: dict[int, Name] = {}

        def value(x: int | Place) -> Name:
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

    def _read(self, k: Lanes, x: Place, i: Name, pointers: dict[int, Name], loaded: dict[int, Name]) -> Name:
        if isinstance(x, Uniform):
            return k.splat(x.element, "i1" if x.boolean else "double")
        if isinstance(x, Small):
            return k.splat(x.elements[0], "i1" if x.boolean else "double")
        number = (
            k.splat(loaded[id(x)]) if id(x) in loaded else self._load(k, pointers[id(x)], i, self._strides[id(x)][-1])
        )
        return k.compare("une", number, k.constant(0.0)) if x.boolean else number

    def _load(self, k: Lanes, pointer: Name, i: Name, stride: int) -> Name:
        code = self.code
        first = moved_by(code, pointer, i, stride)
        if k.width == 1 or stride == 1:
            return k.load(first)
        vector = "poison" if not k.mask else k.constant(1.0)
        for lane in range(k.active):
            place = code.emit(f"getelementptr inbounds double, ptr {first}, i64 {lane * stride}")
            one = code.emit(f"load double, ptr {place}, align 8")
            vector = code.emit(f"insertelement {k.real} {vector}, double {one}, i64 {lane}")
        return vector

    def _write(self, k: Lanes, number: Name, i: Name, pointer: Name, stride: int) -> None:
        code = self.code
        first = moved_by(code, pointer, i, stride)
        if k.width == 1 or stride == 1:
            k.store(number, first)
            return
        for lane in range(k.active):
            place = code.emit(f"getelementptr inbounds double, ptr {first}, i64 {lane * stride}")
            one = code.emit(f"extractelement {k.real} {number}, i64 {lane}")
            code.do(f"store double {one}, ptr {place}, align 8")


def across(code: Code, how: Reduction, lanes: Name) -> Name:
    """The eight lanes of an accumulator put together."""
    if how.across:
        name = how.across.partition("@")[2].partition("(")[0]
        code.module.declare(name, "double {}(double, <8 x double>)")
        return code.emit(f"call {how.across}<8 x double> {lanes})")
    one = Lanes(code, 1)
    parts = [code.emit(f"extractelement <8 x double> {lanes}, i64 {k}") for k in range(WIDTH)]
    total = parts[0]
    for part in parts[1:]:
        total = how.join(one, total, part)
    return total


def _aligned(array: Big, shape: Shape) -> list[int]:
    """An array's strides over an index space that it is broadcast to."""
    lead = len(shape) - len(array.shape)
    return [0] * lead + [0 if n == 1 else s for n, s in zip(array.shape, array.strides, strict=True)]


def collapsed(shape: Shape, strides: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """The same index space with fewer axes: those that lie in one line for every array are one; of length 1, none."""
    lengths: list[int] = []
    kept: list[list[int]] = [[] for _ in strides]
    for axis, n in enumerate(shape):
        if n == 1:
            continue
        if lengths and all(k[-1] == s[axis] * n for k, s in zip(kept, strides, strict=True)):
            lengths[-1] *= n
            for k, s in zip(kept, strides, strict=True):
                k[-1] = s[axis]
        else:
            lengths.append(n)
            for k, s in zip(kept, strides, strict=True):
                k.append(s[axis])
    if not lengths:
        return [1], [[0] for _ in strides]
    return lengths, kept


def _start(code: Code, array: Big) -> Name:
    if array.offset == 0:
        return array.base
    return code.emit(f"getelementptr inbounds double, ptr {array.base}, i64 {array.offset}")


def moved_by(code: Code, pointer: Name, i: Name, stride: int) -> Name:
    """pointer + i · stride doubles."""
    step = i if stride == 1 else code.emit(f"mul nsw i64 {i}, {stride}")
    return code.emit(f"getelementptr inbounds double, ptr {pointer}, i64 {step}")


def loop(code: Code, start: Name, stop: Name, step: int, body: Callable[[Name], None]) -> None:
    """for i = start, start + step, … < stop: body(i). It may run no times."""
    head, inside, after = code.label(), code.label(), code.label()
    before = code.block
    code.do(f"br label %{head}")
    code.begin(head)
    i = code.fresh()
    place = len(code.lines)
    code.lines.append("")
    go_on = code.emit(f"icmp slt i64 {i}, {stop}")
    code.do(f"br i1 {go_on}, label %{inside}, label %{after}")
    code.begin(inside)
    body(i)
    following = code.emit(f"add nsw i64 {i}, {step}")
    code.lines[place] = f"  {i} = phi i64 [ {start}, %{before} ], [ {following}, %{code.block} ]"
    code.do(f"br label %{head}")
    code.begin(after)
