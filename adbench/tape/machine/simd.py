"""SIMD arithmetic as LLVM source: on one double, or on a vector of eight.

`Simd` writes instructions for operands of its width and returns their names. With `X`, formulas use Python's operators.
One formula serves single numbers and the inner loops of arrays.
"""

from __future__ import annotations

import copy
import hashlib
import struct
from collections.abc import Callable, Sequence
from typing import Any

from adbench.tape.machine.llvm import processor

WIDTH = 8
"""Numbers per vector: one register of AVX-512. LLVM splits it for shorter registers."""

ZERO_OR_NOT_FINITE, SUBNORMAL = 0x267, 0x090
"""LLVM's masks of classes of numbers."""
_OF_AVX512 = {ZERO_OR_NOT_FINITE: 0x9F, ZERO_OR_NOT_FINITE | SUBNORMAL: 0xBF}
"""LLVM's mask of classes -> that of the instruction of AVX-512."""

Name = str
"""An LLVM value: a name, or a constant."""


def literal(x: float) -> str:
    """A double in LLVM's exact notation."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"


METADATA = """!0 = !{}
!1 = !{!"branch_weights", i32 1, i32 100000}"""
"""Of loads that never change, and of branches that are hardly ever taken."""


class Code:
    """The source of one function, block by block. It computes one point, or several at once, one in each lane.

    lines       the instructions so far
    late        instructions to insert before the line with this number
    entry       instructions at the beginning of the function: memory for variables
    block       the label of the current block
    known       results that later instructions can use again, see `shared_functions`
    is_kernel   whether the function is a kernel
    width       the number of points
    real        the type of a number: a vector with one lane for each point
    bit         the type of a boolean
    """

    def __init__(self, module: Module, width: int = 1) -> None:
        self.module = module
        self.width = width
        self.real, self.bit = ("double", "i1") if width == 1 else (f"<{width} x double>", f"<{width} x i1>")
        self.lines: list[str] = []
        self.late: dict[int, list[str]] = {}
        self.entry: list[str] = []
        self.block = "entry"
        self.known: dict[Any, tuple[Name, ...]] = {}
        self.is_kernel = False
        self._count = 0

    def fresh(self) -> Name:
        """An unused name."""
        self._count += 1
        return f"%v{self._count}"

    def emit(self, text: str) -> Name:
        """Write an instruction and return the name of its result."""
        self._count += 1
        name = f"%v{self._count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Write an instruction that has no result."""
        self.lines.append(f"  {text}")

    def label(self) -> str:
        """An unused label."""
        self._count += 1
        return f"b{self._count}"

    def begin(self, label: str) -> None:
        """Begin a block."""
        self.lines.append(f"{label}:")
        self.block = label

    def every_line(self) -> list[str]:
        """All lines, including the late ones."""
        if not self.late:
            return self.lines
        lines: list[str] = []
        for k, line in enumerate(self.lines):
            lines += self.late.get(k, ())
            lines.append(line)
        return lines

    def constant(self, x: float) -> Name:
        """A number in all lanes."""
        return literal(x) if self.width == 1 else f"splat (double {literal(x)})"

    def load(self, pointer: Name, kind: str = "") -> Name:
        """The value at an address."""
        kind = kind or self.real
        return self.emit(f"load {kind}, ptr {pointer}, align {4 if kind == 'i32' else 8}")

    def store(self, value: Name, pointer: Name, kind: str = "") -> None:
        """Write a value to an address."""
        kind = kind or self.real
        self.do(f"store {kind} {value}, ptr {pointer}, align {4 if kind == 'i32' else 8}")

    def element(self, pointer: Name, i: Name, stride: int = 1) -> Name:
        """The address of number i · stride of an array."""
        step = i if stride == 1 else self.emit(f"mul nsw i64 {i}, {stride}")
        return self.emit(f"getelementptr inbounds {self.real}, ptr {pointer}, i64 {step}")

    def leave_unless(self, condition: Name, label: str) -> None:
        """Jump to a label if the condition does not hold."""
        following = self.label()
        self.do(f"br i1 {condition}, label %{following}, label %{label}")
        self.begin(following)

    def leave_if(self, condition: Name, label: str) -> None:
        """Jump to a label if the condition holds."""
        following = self.label()
        self.do(f"br i1 {condition}, label %{label}, label %{following}")
        self.begin(following)

    def loop(self, stop: Name | int, body: Callable[[Name], None], start: Name = "0", step: int = 1) -> None:
        """Write a loop: for i = start, start + step, … < stop: body(i). It may run zero times."""
        head, inside, after = self.label(), self.label(), self.label()
        before = self.block
        self.do(f"br label %{head}")
        self.begin(head)
        i = self.fresh()
        line = len(self.lines)
        self.lines.append("")
        is_inside = self.emit(f"icmp slt i64 {i}, {stop}")
        self.do(f"br i1 {is_inside}, label %{inside}, label %{after}")
        self.begin(inside)
        body(i)
        following = self.emit(f"add nsw i64 {i}, {step}")
        self.lines[line] = f"  {i} = phi i64 [ {start}, %{before} ], [ {following}, %{self.block} ]"
        self.do(f"br label %{head}")
        self.begin(after)

    def either(
        self, condition: Name, first: Callable[[], Any], second: Callable[[], Any] = lambda: None, kind: str = ""
    ) -> Name:
        """Run the first or the second piece of code. With a type, the result is its value."""
        after, values = self.label(), []
        labels = self.label(), self.label()
        self.do(f"br i1 {condition}, label %{labels[0]}, label %{labels[1]}")
        for label, write in zip(labels, (first, second), strict=True):
            self.begin(label)
            value = write()
            values.append(f"[ {value}, %{self.block} ]")
            self.do(f"br label %{after}")
        self.begin(after)
        return self.emit(f"phi {kind} {', '.join(values)}") if kind else ""

    def variable(self, kind: str) -> Name:
        """Memory on the stack for one value."""
        self._count += 1
        name = f"%s{self._count}"
        self.entry.append(f"  {name} = alloca {kind}, align 64")
        return name


class Module:
    """An LLVM module: functions, declarations, constants, and a table of addresses that is filled on loading.

    kernels          names of the kernels that are functions of this module
    inlined          instructions of kernels that are written into other functions
    shares_kernels   whether it calls kernels of other modules, see `shared_functions`
    """

    def __init__(self, *, fast_math: bool = False, shares_kernels: bool = False) -> None:
        self.declarations: dict[str, str] = {}
        self.globals: list[str] = []
        self.functions: list[str] = []
        self.flags = " fast" if fast_math else ""
        self.environment: list[Any] = []
        self.kernels: set[str] = set()
        self.inlined = 0
        self.shares_kernels = shares_kernels
        self._places: dict[Any, int] = {}

    def declare(self, name: str, signature: str, attributes: str = "nounwind") -> str:
        """Declare an external function; `signature` has {} instead of the name."""
        self.declarations.setdefault(name, f"declare {signature.replace('{}', '@' + name)} {attributes}")
        return f"@{name}"

    def constant(self, text: str) -> str:
        """The name of a global constant."""
        name = f"@c{len(self.globals)}"
        self.globals.append(f"{name} = private unnamed_addr constant {text}")
        return name

    def outside(self, code: Code, key: Any, thing: Any) -> Name:
        """The address of an object that exists on loading, read from the module's table."""
        location = self._places.get(key)
        if location is None:
            location = self._places[key] = len(self.environment)
            self.environment.append(thing)
        return code.emit(
            f"load ptr, ptr getelementptr (ptr, ptr @environment, i64 {location}), align 8, !invariant.load !0"
        )

    def function(self, header: str, code: Code) -> None:
        """Add a function."""
        body = "\n".join(["entry:", *code.entry, *code.every_line()])
        self.functions.append(f"define {header} {{\n{body}\n}}")

    def text(self) -> str:
        """The source of the module."""
        size = max(len(self.environment), 1)
        table = f"@environment = global [{size} x ptr] zeroinitializer, align 8"
        return "\n".join([table, *self.globals, *self.declarations.values(), *self.functions, METADATA, ""])


class Simd:
    """Instructions for operands of one width.

    active   the number of active lanes; the others are neither read nor written
    mask     of the active lanes, "" if all are active
    """

    def __init__(self, code: Code, width: int, *, active: int = 0) -> None:
        self.code = code
        self.width = width
        self.active = active or width
        bits = ", ".join(f"i1 {'true' if lane < self.active else 'false'}" for lane in range(width))
        self.mask = f"<{bits}>" if self.active < width else ""
        single = width == 1
        self.real = "double" if single else f"<{width} x double>"
        self.bit = "i1" if single else f"<{width} x i1>"
        self.integer = "i64" if single else f"<{width} x i64>"
        self.suffix = "f64" if single else f"v{width}f64"
        self.truth = "true" if single else "splat (i1 true)"
        self.flags = code.module.flags

    def constant(self, x: float) -> Name:
        """A number in all lanes."""
        return literal(x) if self.width == 1 else f"splat (double {literal(x)})"

    def whole(self, n: int) -> Name:
        """An integer in all lanes."""
        return str(n) if self.width == 1 else f"splat (i64 {n})"

    def splat(self, name: Name, kind: str = "double") -> Name:
        """One value in all lanes."""
        if self.width == 1:
            return name
        if not name.startswith("%"):
            return f"splat ({kind} {name})"
        vector = f"<{self.width} x {kind}>"
        one = self.code.emit(f"insertelement {vector} poison, {kind} {name}, i64 0")
        return self.code.emit(f"shufflevector {vector} {one}, {vector} poison, <{self.width} x i32> zeroinitializer")

    def vector(self, elements: Sequence[Name]) -> Name:
        """Numbers in the first lanes, and the first of them in the others."""
        if len(set(elements)) == 1:
            return self.splat(elements[0])
        known = self.code.known.get(("vector", *elements))
        if known is None:
            name = self.splat(elements[0])
            for lane, element in enumerate(elements[1:], 1):
                name = self.code.emit(f"insertelement {self.real} {name}, double {element}, i64 {lane}")
            known = self.code.known["vector", *elements] = (name,)
        return known[0]

    def binary(self, op: str, a: Name, b: Name) -> Name:
        """fadd, fsub, fmul, fdiv, frem."""
        return self.code.emit(f"{op}{self.flags} {self.real} {a}, {b}")

    def compare(self, condition: str, a: Name, b: Name) -> Name:
        """A comparison of numbers: oeq, olt, une, uno, …"""
        return self.code.emit(f"fcmp {condition} {self.real} {a}, {b}")

    def logic(self, op: str, a: Name, b: Name) -> Name:
        """And, or, xor of booleans."""
        return self.code.emit(f"{op} {self.bit} {a}, {b}")

    def select(self, condition: Name, a: Name, b: Name, kind: str = "") -> Name:
        """a where the condition holds, b elsewhere."""
        kind = kind or self.real
        return self.code.emit(f"select {self.bit} {condition}, {kind} {a}, {kind} {b}")

    def intrinsic(self, name: str, *args: Name) -> Name:
        """Call LLVM's intrinsic of that name, such as `sqrt` or `floor`, at any width."""
        kinds = ", ".join([self.real] * len(args))
        function = self.code.module.declare(f"llvm.{name}.{self.suffix}", f"{self.real} {{}}({kinds})")
        arguments = ", ".join(f"{self.real} {a}" for a in args)
        return self.code.emit(f"call{self.flags if name == 'sqrt' else ''} {self.real} {function}({arguments})")

    def called(self, name: str, *args: Name) -> Name:
        """Call a function of the C library, lane by lane."""
        kinds = ", ".join(["double"] * len(args))
        function = self.code.module.declare(name, f"double {{}}({kinds})", "nounwind willreturn memory(none)")
        if self.width == 1:
            return self.code.emit(f"call double {function}({', '.join(f'double {a}' for a in args)})")
        result = "poison" if not self.mask else self.constant(1.0)
        for k in range(self.active):
            parts = [self.code.emit(f"extractelement {self.real} {a}, i64 {k}") for a in args]
            one = self.code.emit(f"call double {function}({', '.join(f'double {p}' for p in parts)})")
            result = self.code.emit(f"insertelement {self.real} {result}, double {one}, i64 {k}")
        return result

    def load(self, pointer: Name) -> Name:
        """Consecutive numbers; 1.0 in inactive lanes."""
        if not self.mask:
            return self.code.emit(f"load {self.real}, ptr {pointer}, align 8")
        kinds = f"{self.real} {{}}(ptr, i32, {self.bit}, {self.real})"
        function = self.code.module.declare(f"llvm.masked.load.{self.suffix}.p0", kinds)
        others = f"{self.real} {self.constant(1.0)}"
        return self.code.emit(f"call {self.real} {function}(ptr {pointer}, i32 8, {self.bit} {self.mask}, {others})")

    def store(self, number: Name, pointer: Name) -> None:
        """Write consecutive numbers."""
        if not self.mask:
            self.code.do(f"store {self.real} {number}, ptr {pointer}, align 8")
            return
        kinds = f"void {{}}({self.real}, ptr, i32, {self.bit})"
        function = self.code.module.declare(f"llvm.masked.store.{self.suffix}.p0", kinds)
        self.code.do(f"call void {function}({self.real} {number}, ptr {pointer}, i32 8, {self.bit} {self.mask})")

    def bits(self, x: Name) -> Name:
        """A number as the integer with the same bits."""
        return self.code.emit(f"bitcast {self.real} {x} to {self.integer}")

    def from_bits(self, n: Name) -> Name:
        """And back."""
        return self.code.emit(f"bitcast {self.integer} {n} to {self.real}")

    def integers(self, op: str, a: Name, b: Name) -> Name:
        """add, sub, shl, ashr, … of integers."""
        return self.code.emit(f"{op} {self.integer} {a}, {b}")

    def to_real(self, n: Name) -> Name:
        """An integer as a number."""
        return self.code.emit(f"sitofp {self.integer} {n} to {self.real}")

    def number(self, bit: Name) -> Name:
        """A boolean as 1.0 or 0.0."""
        return self.select(bit, self.constant(1.0), self.constant(0.0))

    def is_one_of(self, classes: int, x: Name) -> Name:
        """Whether a number is of one of these classes."""
        name, masks = f"llvm.is.fpclass.{self.suffix}", classes
        if self.width == 8 and "+avx512dq" in processor()[1].split(","):  # LLVM would take six instructions
            name, masks = "llvm.x86.avx512.fpclass.pd.512", _OF_AVX512[classes]
        function = self.code.module.declare(name, f"{self.bit} {{}}({self.real}, i32)")
        return self.code.emit(f"call {self.bit} {function}({self.real} {x}, i32 {masks})")

    def any(self, condition: Name) -> Name:
        """Whether the condition holds in a lane."""
        if self.width == 1:
            return condition
        function = self.code.module.declare(f"llvm.vector.reduce.or.v{self.width}i1", f"i1 {{}}({self.bit})")
        return self.code.emit(f"call i1 {function}({self.bit} {condition})")

    def shuffled(self, a: Name, b: Name, lanes: Sequence[int]) -> Name:
        """Lanes of two vectors; those of the second follow those of the first."""
        order = ", ".join(f"i32 {lane}" for lane in lanes)
        return self.code.emit(f"shufflevector {self.real} {a}, {self.real} {b}, <{len(lanes)} x i32> <{order}>")

    def transposed(self, lines: Sequence[Name]) -> list[Name]:
        """The columns of a square of eight vectors: exchange halves, then quarters, then neighbours."""
        lines = list(lines)
        for s in (4, 2, 1):
            for a in (a for a in range(WIDTH) if not a & s):
                pair = lines[a], lines[a + s]
                lines[a] = self.shuffled(*pair, [k if not k & s else WIDTH + k - s for k in range(WIDTH)])
                lines[a + s] = self.shuffled(*pair, [k + s if not k & s else WIDTH + k for k in range(WIDTH)])
        return lines

    def lookup(self, table: Sequence[float], index: Name) -> Name:
        """table[index & 15], for a table of sixteen numbers: one instruction of AVX-512, or a load for each lane."""
        numbers, code = ", ".join(f"double {literal(x)}" for x in table), self.code
        if self.width == 8 and "+avx512f" in processor()[1].split(","):
            name = "llvm.x86.avx512.vpermi2var.pd.512"
            function = code.module.declare(name, f"{self.real} {{}}({self.real}, {self.integer}, {self.real})")
            parts = numbers.split(", ")
            low, high = (f"{self.real} <{', '.join(part)}>" for part in (parts[:8], parts[8:]))
            return code.emit(f"call {self.real} {function}({low}, {self.integer} {index}, {high})")
        kind = "[16 x double]"
        names = code.module.declarations
        constant = f"@table{hashlib.sha256(numbers.encode()).hexdigest()[:16]}"
        names.setdefault(constant, f"{constant} = private unnamed_addr constant {kind} [{numbers}], align 64")
        index = self.integers("and", index, self.whole(15))
        if self.width == 1:
            return code.load(code.emit(f"getelementptr inbounds {kind}, ptr {constant}, i64 0, i64 {index}"))
        result = "poison"
        for lane in range(self.width):
            one = code.emit(f"extractelement {self.integer} {index}, i64 {lane}")
            one = code.load(code.emit(f"getelementptr inbounds {kind}, ptr {constant}, i64 0, i64 {one}"))
            result = code.emit(f"insertelement {self.real} {result}, double {one}, i64 {lane}")
        return result

    def exact(self) -> Simd:
        """This without fast-math, for formulas that depend on the rounding of each operation."""
        strict = copy.copy(self)
        strict.flags = ""
        return strict

    def x(self, value: Name | float) -> X:
        """A number for formulas with operators."""
        return X(self, self.constant(value) if isinstance(value, float) else value)


def _binary(op: str) -> Callable[[X, X | float], X]:
    return lambda self, other: X(self.k, self.k.binary(op, self.name, self._name_of(other)))


def _swapped(op: str) -> Callable[[X, float], X]:
    return lambda self, other: X(self.k, self.k.binary(op, self._name_of(other), self.name))


class X:
    """A number in lanes, with Python's operators. (Comparisons are those of `Simd`.)"""

    __slots__ = ("k", "name")

    def __init__(self, k: Simd, name: Name) -> None:
        self.k = k
        self.name = name

    def _name_of(self, other: X | float) -> Name:
        return self.k.constant(other) if isinstance(other, float) else other.name

    __add__, __radd__ = _binary("fadd"), _swapped("fadd")
    __sub__, __rsub__ = _binary("fsub"), _swapped("fsub")
    __mul__, __rmul__ = _binary("fmul"), _swapped("fmul")
    __truediv__, __rtruediv__ = _binary("fdiv"), _swapped("fdiv")

    def __neg__(self) -> X:
        return X(self.k, self.k.code.emit(f"fneg {self.k.real} {self.name}"))

    def __abs__(self) -> X:
        return X(self.k, self.k.intrinsic("fabs", self.name))

    def times(self, factor: X | float, plus: X | float) -> X:
        """self · factor + plus, rounded once if the processor can."""
        names = self.name, self._name_of(factor), self._name_of(plus)
        return X(self.k, self.k.intrinsic("fmuladd", *names))

    def fma(self, factor: X | float, plus: X | float) -> X:
        """self · factor + plus, always rounded once."""
        names = self.name, self._name_of(factor), self._name_of(plus)
        return X(self.k, self.k.intrinsic("fma", *names))

    def is_(self, condition: str, other: X | float) -> Name:
        """A comparison."""
        return self.k.compare(condition, self.name, self._name_of(other))

    def where(self, condition: Name, other: X | float) -> X:
        """Self where the condition holds, other elsewhere."""
        return X(self.k, self.k.select(condition, self.name, self._name_of(other)))
