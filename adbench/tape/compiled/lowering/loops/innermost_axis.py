"""The innermost loop of fused loops: eight elements at a time, with several partial sums.

The order of a sum depends only on the length of the axis, not on the processor, the threads or the other operations.
The axis is cut into blocks of 4096 elements. In a block:

    element i goes to partial sum i mod 32, up to the last multiple of 32
    then the rest goes to partial sum i mod 8
    the result is (p₀…₇ + p₈…₁₅) + (p₁₆…₂₃ + p₂₄…₃₁), then halves of the lanes: l with l + 4, l + 2, l + 1

Block sums are added from first to last. An axis of fewer than eight elements is added from first to last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from adbench.tape.compiled.kernels.mathematics.shared_functions import INLINE
from adbench.tape.compiled.lowering.loops.fused_steps import (
    SUM,
    Delay,
    Delayed,
    Divisor,
    Fold,
    FusedStep,
    Operand,
    Reduction,
    by_inverse,
    common_divisor,
    divisor_of,
    inverse_of,
    inverted,
    joined,
)
from adbench.tape.compiled.lowering.storage import Buffer, Location, Registers, Uniform
from adbench.tape.machine.simd import WIDTH, Code, Name, Simd, literal

BLOCK = 4096
"""Elements after which partial sums are combined."""
CHAINS = 4
"""Vectors of partial sums: as many additions overlap, because each waits for the one before it."""
LONGEST_UNROLLED = 40
"""Instructions up to which the body of a loop with sums is written once per vector of partial sums. The instructions of
a longer body take more time than an addition waits, so its partial sums can be in memory."""
LONGEST_REPEATED = 120
"""Instructions up to which the operations are written once for each index of a short axis."""
FAR = 2**18
"""Elements from which a loop that only reads asks for later ones: 2 MB, more than the cache of one core."""
AHEAD = 1024
"""How many elements before it reads them."""
CALL = 20
"""Instructions on vectors that take the time of a call of the C library."""


@dataclass(eq=False)
class InnermostAxis:
    """The last axis of fused loops.

    n, least   the lengths of the longest and the shortest operation
    divisors   the key of a quotient -> its divisor that is the same in all elements
    inverted   keys of other divisors whose inverse serves several quotients
    strides    of each array along this axis, by the array's id
    pointers   to each array's first element on this axis, likewise
    repeated   the pointers for each index of a short axis before this one, along which all folds reduce: the indices
               follow each other at every vector, so the partial results stay in registers
    """

    code: Code
    steps: Sequence[FusedStep]
    folds: Sequence[Fold]
    n: int
    strides: dict[int, int]
    pointers: dict[int, Name]

    def __post_init__(self) -> None:
        n, steps = self.n, self.steps
        self.least = min([n, *(s.length for s in steps if s.length)])
        self.divisors: dict[int, Divisor] = {}
        self.repeated: list[dict[int, Name]] = []
        self.copies: list[tuple[dict[int, Name], dict[int, Name]]] = []  # pointers, and numbers read before the loop
        self.inverted = inverted(steps) if n >= WIDTH else set()
        stores = any(s.stores for s in steps) or any(self.strides[id(fold.target)] for fold in self.folds)
        self.asks_early = n >= FAR and not stores
        self.fetched: set[tuple[Name, int, Name]] = set()
        self.delays = sorted({(x.key, x.fill) for s in steps for x in s.operands if isinstance(x, Delayed)})

    def write(self, start: Name = "0", stop: Name = "") -> None:
        """Write the loop from `start`, a multiple of the block, to `stop`: the end of a block, or of the axis."""
        code, n = self.code, self.n
        self.sums = [k for k, fold in enumerate(self.folds) if self.strides[id(fold.target)] == 0]
        self._prepare()
        if n < WIDTH:
            self._one_by_one()
            return
        conditions = [d.usable for d in self.divisors.values() if d.usable != "true"]
        if not conditions:
            self._vectors(start, stop)
            return
        usable = conditions[0]
        for condition in conditions[1:]:
            usable = code.emit(f"and i1 {usable}, {condition}")

        def slowly() -> None:
            self.divisors = {key: d for key, d in self.divisors.items() if d.usable == "true"}
            inlined, code.module.inlined = code.module.inlined, INLINE
            self._vectors(start, stop, may_unroll=False)
            code.module.inlined = inlined

        code.either(usable, lambda: self._vectors(start, stop), slowly)

    def _vectors(self, start: Name, stop: Name, *, may_unroll: bool = True) -> None:
        """Write the loop over vectors, and the rest of the axis."""
        code, n = self.code, self.n
        end = self.least // WIDTH * WIDTH  # of whole vectors
        whole = str(end)
        if stop:
            is_last = code.emit(f"icmp eq i64 {stop}, {n}")
            whole = code.emit(f"select i1 {is_last}, i64 {end}, i64 {stop}")
        flags = {k: code.variable(Simd(code, WIDTH).bit) for k in self.sums if self.folds[k].counts is not None}
        chains = CHAINS if len(flags) < len(self.sums) and end >= CHAINS * WIDTH else 1
        vector = Simd(code, WIDTH).real
        kind = f"[{chains} x {vector}]"
        unrolled = may_unroll and chains > 1 and self._instructions() <= LONGEST_UNROLLED
        for flag in flags.values():
            code.do(f"store {Simd(code, WIDTH).bit} zeroinitializer, ptr {flag}, align 1")
        kept: dict[int, list[Name]] = {
            k: [code.variable(vector) for _ in range(chains)] if unrolled else [code.variable(kind)]
            for k in self.sums
            if k not in flags
        }
        for k, variables in kept.items():
            first = Simd(code, WIDTH).constant(self.folds[k].how.start)
            places = variables if unrolled else [self._chain(variables[0], str(c)) for c in range(chains)]
            for place in places:
                code.do(f"store {vector} {first}, ptr {place}, align 64")
        self._warm_up(start)
        together = code.emit(f"and i64 {whole}, {-CHAINS * WIDTH}") if chains > 1 else ""
        if unrolled:

            def all_chains(i: Name) -> None:
                for c in range(chains):
                    at = i if c == 0 else code.emit(f"add nuw nsw i64 {i}, {c * WIDTH}")
                    self._elements(at, {}, flags | {k: v[c] for k, v in kept.items()})

            code.loop(together, all_chains, start, chains * WIDTH)
            start = code.emit(f"call i64 @llvm.smax.i64(i64 {start}, i64 {together})")
            code.module.declare("llvm.smax.i64", "i64 {}(i64, i64)")

        def one_vector(i: Name) -> None:
            if chains == 1 or unrolled:
                self._elements(i, {}, flags | {k: v[0] for k, v in kept.items()})
                return
            number = code.emit(f"and i64 {code.emit(f'lshr i64 {i}, {WIDTH.bit_length() - 1}')}, {chains - 1}")
            is_rest = code.emit(f"icmp sge i64 {i}, {together}")
            number = code.emit(f"select i1 {is_rest}, i64 0, i64 {number}")
            self._elements(i, {}, flags | {k: self._chain(v[0], number) for k, v in kept.items()})

        code.loop(whole, one_vector, start, WIDTH)
        if n > end:

            def rest(i: Name) -> None:
                for number, first in enumerate(range(end, n, WIDTH)):
                    lengths = {s.length or n for s in self.steps} | {f.length or n for f in self.folds}
                    active = {m: min(max(m - first, 0), WIDTH) for m in lengths}
                    at = i if number == 0 else code.emit(f"add nuw nsw i64 {i}, {number * WIDTH}")
                    self._elements(at, active, flags | {k: v[0] for k, v in kept.items()})

            code.loop(stop or n, rest, whole, 2 * WIDTH)  # once, in the last block
        for k, variables in kept.items():
            places = variables if unrolled else [self._chain(variables[0], str(c)) for c in range(chains)]
            parts = [code.emit(f"load {vector}, ptr {place}, align 64") for place in places]
            self._add_to_target(k, joined(code, self.folds[k].how, parts))
        for k, flag in flags.items():
            one = Simd(code, WIDTH)
            self._add_to_target(k, Simd(code, 1).number(one.any(code.load(flag, one.bit))))

    def _chain(self, variable: Name, number: Name) -> Name:
        return self.code.emit(f"getelementptr inbounds <{WIDTH} x double>, ptr {variable}, i64 {number}")

    def _add_to_target(self, k: int, total: Name) -> None:
        target = self.pointers[id(self.folds[k].target)]
        before = self.code.load(target)
        self.code.store(self.folds[k].how.join(Simd(self.code, 1), before, total), target)

    def _one_by_one(self) -> None:
        """Write the loop over an axis that is shorter than a vector."""
        code = self.code
        variables = {k: code.variable("double") for k in self.sums}
        for k, variable in variables.items():
            code.store(literal(self.folds[k].how.start), variable)
        self.one = Simd(code, 1)
        code.loop(self.n, lambda i: self._elements(i, None, variables))
        for k, variable in variables.items():
            self._add_to_target(k, code.load(variable))

    def _instructions(self, call: int = 1) -> int:
        """The number of instructions for one vector; a call of the C library counts as this many."""
        code, self.code = self.code, Code(self.code.module)
        self._elements("0", {}, {})
        lines, self.code = self.code.lines, code
        return len(lines) + (call - 1) * sum("call double @" in line for line in lines)

    def instructions(self, call: int) -> int:
        """The number of instructions for one vector, before anything is written."""
        self.sums = []
        self._prepare()
        return self._instructions(call)

    def repeats(self, pointers: Sequence[dict[int, Name]]) -> bool:
        """Repeat the operations for these pointers, if the body stays short."""
        folds = all(self.strides[id(f.target)] != 0 and not f.length for f in self.folds)
        if not folds or self.delays or self.n < WIDTH or self.instructions(CALL) * len(pointers) > LONGEST_REPEATED:
            return False
        self.repeated = list(pointers)
        return True

    # Values that are the same in all elements

    def _prepare(self) -> None:
        """Read what is the same in all elements, and invert divisors."""
        self.divisors = {}
        self.copies = [(p, self._load_fixed(p)) for p in self.repeated or [self.pointers]]
        self.pointers, self.loaded = self.copies[0]
        self.carried = {delay: self.code.variable(Simd(self.code, WIDTH).real) for delay in self.delays}
        for step in self.steps:
            if step.divides and self.n >= WIDTH and not self.repeated:
                y = self._fixed(step.operands[1])
                divisor = None if y is None else common_divisor(self.code, y)
                if divisor is not None:
                    self.divisors[step.key] = divisor

    def _load_fixed(self, pointers: dict[int, Name]) -> dict[int, Name]:
        """The numbers of arrays that do not move along this axis."""
        loaded: dict[int, Name] = {}
        operands = [x for step in self.steps for x in step.operands] + [fold.operand for fold in self.folds]
        for x in operands:
            if isinstance(x, Buffer) and self.strides[id(x)] == 0 and id(x) not in loaded:
                loaded[id(x)] = self.code.load(pointers[id(x)])
        return loaded

    def _fixed(self, x: Operand) -> Name | None:
        """The name of a number that is the same in all elements, else None."""
        if isinstance(x, (Uniform, Registers)):
            return x.element
        return self.loaded.get(id(x))

    # Elements

    def _warm_up(self, start: Name) -> None:
        """Set delayed results to those before the first element: in a later block, computed again."""
        code, real = self.code, Simd(self.code, WIDTH).real
        for delay, variable in self.carried.items():
            code.do(f"store {real} {Simd(code, WIDTH).constant(delay[1])}, ptr {variable}, align 64")
        if not self.carried or start == "0":
            return
        needed = {key for key, _ in self.delays}
        for step in reversed(self.steps):
            if step.key in needed:
                needed |= step.reads()
        before = code.emit(f"call i64 @llvm.smax.i64(i64 {code.emit(f'sub i64 {start}, {WIDTH}')}, i64 0)")
        code.module.declare("llvm.smax.i64", "i64 {}(i64, i64)")
        code.loop(start, lambda i: self._elements(i, {}, {}, needed), before, WIDTH)

    def _elements(
        self, i: Name, active: dict[int, int] | None, sums: dict[int, Name], only: set[int] | None = None
    ) -> None:
        """Write all operations for the vector of elements at i.

        active   length of an operation -> its elements in this vector, if not all; None for single elements
        sums     number of a fold -> the address of its partial sums, or of the lanes where a condition held
        only     keys of the operations that are needed, without stores and sums; None for all
        """
        totals: dict[int, tuple[Simd, Name]] = {}
        for pointers, loaded in self.copies:
            self.pointers, self.loaded = pointers, loaded
            self._one_element(i, active, sums, only, totals)
        for number, (k, total) in totals.items():
            self._store(k, total, i, self.folds[number].target)

    def _one_element(
        self,
        i: Name,
        active: dict[int, int] | None,
        sums: dict[int, Name],
        only: set[int] | None,
        totals: dict[int, tuple[Simd, Name]],
    ) -> None:
        code, real = self.code, Simd(self.code, WIDTH).real
        reusable = dict(code.known)
        known: dict[int, Name] = {}
        factors: dict[Operand, tuple[Name, Name]] = {}
        inverses: dict[Any, tuple[Name, Name]] = {}
        early = {d: code.emit(f"load {real}, ptr {v}, align 64") for d, v in self.carried.items()}
        now = {d: Simd(code, WIDTH).constant(d[1]) for d in self.carried}
        for step in self.steps:
            k = self._width(step.length or self.n, active)
            if k is None or (only is not None and step.key not in only):
                continue
            if step.key in self.divisors:
                x = self._operand(k, step.operands[0], i, known, early, now)
                name = self.divisors[step.key].quotient(k, x, exactly=step.divides == "exact")
            else:
                names = [self._operand(k, x, i, known, early, now) for x in step.operands]
                if step.divides and (of := divisor_of(step)) in self.inverted:
                    if of not in inverses:
                        inverses[of] = inverse_of(k, names[1])
                    name = by_inverse(k, step, names, inverses[of])
                else:
                    name = step.write(k, *names)
                if step.multiplies:
                    factors[step.key] = names[0], names[-1]
            known[step.key] = name
            for delay in self.carried:
                if delay[0] == step.key:
                    now[delay] = k.select(k.mask, name, k.constant(delay[1])) if k.mask else name
            for target in step.stores if only is None else ():
                self._store(k, k.number(name) if step.boolean else name, i, target)
        for delay, variable in self.carried.items():
            code.do(f"store {real} {now[delay]}, ptr {variable}, align 64")
        for number, fold in enumerate(self.folds if only is None else ()):
            k = self._width(fold.length or self.n, active)
            if k is None:
                continue
            name = self._operand(k, fold.operand, i, known, early, now)
            if fold.counts is not None:
                name = name if fold.counts else k.logic("xor", name, k.truth)
                if k.width > 1 and number in self.sums:
                    if sums:
                        self._note(k, name, sums[number])
                    continue
                name = k.number(name)
            if number not in self.sums:
                there = totals[number][1] if number in totals else self._load(k, fold.target, i)
                totals[number] = k, fold.how.join(k, there, name)
            elif sums:
                product = factors.get(fold.operand) if fold.how is SUM else None
                self._accumulate(k, fold.how, name, sums[number], product)
        code.known = reusable  # results in this loop do not reach the next

    def _width(self, length: int, active: dict[int, int] | None) -> Simd | None:
        """Instructions for the elements of an operation of this length; None if it has none here."""
        if active is None:
            return self.one
        count = active.get(length, WIDTH)
        return Simd(self.code, WIDTH, active=count if count < WIDTH else 0) if count else None

    def _note(self, k: Simd, bits: Name, place: Name) -> None:
        """Remember in which lanes a condition held."""
        bits = k.logic("and", bits, k.mask) if k.mask else bits
        held = k.logic("or", self.code.emit(f"load {k.bit}, ptr {place}, align 1"), bits)
        self.code.do(f"store {k.bit} {held}, ptr {place}, align 1")

    def _accumulate(
        self, k: Simd, how: Reduction, name: Name, place: Name, product: tuple[Name, Name] | None = None
    ) -> None:
        """Add a number to a partial sum; the product of two without rounding it first, if the processor can."""
        code, align = self.code, 64 if k.width > 1 else 8
        before = code.emit(f"load {k.real}, ptr {place}, align {align}")
        after = k.intrinsic("fmuladd", *product, before) if product else how.join(k, before, name)
        if k.mask:
            after = code.emit(f"select {k.bit} {k.mask}, {k.real} {after}, {k.real} {before}")
        code.do(f"store {k.real} {after}, ptr {place}, align {align}")

    def _operand(
        self, k: Simd, x: Operand, i: Name, known: dict[int, Name], early: dict[Delay, Name], now: dict[Delay, Name]
    ) -> Name:
        if isinstance(x, int):
            return known[x]
        if isinstance(x, Delayed):
            delay = x.key, x.fill
            if x.by == 0:
                return now[delay]
            return k.shuffled(early[delay], now[delay], [WIDTH - x.by + lane for lane in range(WIDTH)])
        if id(x) not in known:
            known[id(x)] = self._read(k, x, i)
        return known[id(x)]

    def _read(self, k: Simd, x: Location, i: Name) -> Name:
        fixed = self._fixed(x)
        if not isinstance(x, Buffer):
            return k.splat(fixed or "", "i1" if x.boolean else "double")
        number = self._load(k, x, i) if fixed is None else k.splat(fixed)
        return k.compare("une", number, k.constant(0.0)) if x.boolean else number

    def _load(self, k: Simd, array: Buffer, i: Name) -> Name:
        """The elements from position i."""
        code, stride = self.code, self.strides[id(array)]
        first = code.element(self.pointers[id(array)], i, stride)
        if k.width == 1:
            return k.load(first)
        if stride == 1:
            self._fetch(k, array, i, first)
            return k.load(first)
        if stride in (-2, -1, 2) and not k.mask:  # the elements are in two vectors within the array
            back = 0 if stride > 0 else 1 - WIDTH
            far = {2: WIDTH - 1, -1: back, -2: 2 * back}[stride]
            near, far_one = (
                k.load(code.emit(f"getelementptr inbounds double, ptr {first}, i64 {offset}")) for offset in (back, far)
            )
            steps = [lane * stride for lane in range(WIDTH)]
            if stride == 2:
                lanes = [s if s < WIDTH else s + 1 for s in steps]
            else:
                lanes = [s + WIDTH - 1 if s > -WIDTH else s + 3 * WIDTH - 2 for s in steps]
            return k.shuffled(near, far_one, lanes)
        vector = "poison" if not k.mask else k.constant(1.0)
        for lane in range(k.active):
            location = code.emit(f"getelementptr inbounds double, ptr {first}, i64 {lane * stride}")
            vector = code.emit(f"insertelement {k.real} {vector}, double {code.load(location)}, i64 {lane}")
        return vector

    def _fetch(self, k: Simd, array: Buffer, i: Name, first: Name) -> None:
        """Ask for elements that a long loop reads later; once for slices that begin close to each other."""
        line = array.base, array.offset // WIDTH, i
        if not self.asks_early or k.mask or line in self.fetched:
            return
        self.fetched.add(line)
        there = self.code.emit(f"getelementptr double, ptr {first}, i64 {AHEAD}")
        function = self.code.module.declare("llvm.prefetch.p0", "void {}(ptr, i32, i32, i32)")
        self.code.do(f"call void {function}(ptr {there}, i32 0, i32 3, i32 1)")

    def _store(self, k: Simd, number: Name, i: Name, array: Buffer) -> None:
        """Write the elements from position i."""
        code, stride = self.code, self.strides[id(array)]
        first = code.element(self.pointers[id(array)], i, stride)
        if k.width == 1 or stride == 1:
            k.store(number, first)
            return
        for lane in range(k.active):
            location = code.emit(f"getelementptr inbounds double, ptr {first}, i64 {lane * stride}")
            code.store(code.emit(f"extractelement {k.real} {number}, i64 {lane}"), location)
