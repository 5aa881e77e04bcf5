"""The state of code generation: the current function, its memory, constants, copies and fills."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from adbench.tape.compiled.lowering.loop_fusion import FusedLoops
from adbench.tape.compiled.lowering.loops.fused_steps import FusedStep
from adbench.tape.compiled.lowering.loops.loop_nest import Helpers, copy_blocks, is_transposed
from adbench.tape.compiled.lowering.storage import (
    REGISTER_LIMIT,
    Buffer,
    Location,
    Registers,
    Shape,
    Uniform,
    Workspace,
    view_of,
)
from adbench.tape.core.rule import Rule, TapeError, Value
from adbench.tape.machine.simd import Code, Module, Name, Simd, literal


class ReturnCode(IntEnum):
    """Return values of `run`."""

    DONE = 0
    GUARD = 1
    """A guard failed: try another recording."""
    NAN = 2
    """A derivative is NaN, or a sum that should be multiplied by a number is not finite: run the careful program."""
    ERROR = 3
    """No result: a matrix is singular, or a call into Python failed."""


LEAVING = {"on_guard": ReturnCode.GUARD, "on_nan": ReturnCode.NAN, "on_error": ReturnCode.ERROR}
"""Label of an early exit -> the function's return value."""

NO_LANE = 1 << 16
"""The return value for several points if the guards fail in all lanes."""


class NotInLanesError(TapeError):
    """The program has operations that run for one point at a time."""


@dataclass(frozen=True)
class KernelOperation:
    """An operation to write code for.

    operands         the locations of the inputs; None for an argument that is None
    shape, boolean   of the result
    target           the preferred memory for the result, if any
    """

    emission: Emission
    rule: Rule
    operands: Sequence[Any]
    params: dict[str, Any]
    shape: Shape
    boolean: bool
    target: Buffer | None = None

    @property
    def size(self) -> int:
        """The number of the result's elements."""
        return math.prod(self.shape)

    def output(self) -> Buffer:
        """Contiguous memory for the result: the target, if that is contiguous."""
        wanted = self.target is not None and self.target.is_contiguous
        return self.target if wanted else self.emission.allocate(self.shape)  # type: ignore[return-value]


@dataclass(frozen=True)
class Piece:
    """A placeholder, in an environment, for the address of the function of the piece with this number."""

    number: int


@dataclass(eq=False, kw_only=True)
class Emission:
    """The function being generated, and its workspace.

    level          of optimisation
    pieces         modules of the finished functions: a long program is cut
    lines          written before the current function, for distances
    python_calls   names of rules called in Python, which `explain` reports
    computed       results that several operations share, such as the factors of a matrix
    reading        the current operation's operands, as symbols
    width          the number of points that run at once, one in each SIMD lane
    careful        whether this is the careful program, which runs where another gave NaN
    held           with several points, the lanes whose guards have held so far; between pieces it is in `%work`
    """

    fast_math: bool
    level: int = 2
    helpers: Helpers | None = None
    width: int = 1
    careful: bool = False

    def __post_init__(self) -> None:
        self.module = Module(fast_math=self.fast_math, shares_kernels=self.level == 0)
        self.code = Code(self.module, self.width)
        self.workspace = Workspace()
        self.held = ""
        if self.width > 1:
            self.workspace.unused(1)
            self.held = self.code.load("%work", self.code.bit)
        self.pieces: list[Module] = []
        self.lines = 0
        self._anchors: list[tuple[Name, Callable[[Code], Name]]] = []
        self.python_calls: list[str] = []
        self.exits: set[str] = set()
        self.computed: dict[Any, Any] = {}
        self.reading: tuple[Value, ...] = ()
        self._values: dict[tuple[int, int], int] = {}  # a block of the workspace -> the number of values in it
        self._constants: dict[int, tuple[Any, Location]] = {}

    # Pieces

    def anchor(self, write: Callable[[Code], Name]) -> Name:
        """The name of an address, read at the beginning of the function and of every later piece."""
        name = self._at_the_beginning(write)
        self._anchors.append((name, write))
        return name

    def _at_the_beginning(self, write: Callable[[Code], Name], name: Name | None = None) -> Name:
        beginning = Code(self.module, self.width)
        beginning._count = self.code._count
        written = write(beginning)
        self.code._count = beginning._count
        if name is not None:  # under its name in the earlier pieces
            beginning.lines = [line.replace(f"{written} = ", f"{name} = ") for line in beginning.lines]
        self.code.entry += beginning.lines
        return name or written

    def is_anchored(self, location: Location) -> bool:
        """Whether later pieces can reach the memory."""
        return (
            not isinstance(location, Buffer)
            or location.base in ("%work", "%arguments")
            or any(location.base == a for a, _ in self._anchors)
        )

    def end_function(self, name: str, outcome: Name = "0") -> None:
        """Finish the current function, which returns this."""
        code = self.code
        code.do(f"ret i32 {outcome}")
        for label, other in (LEAVING if self.width == 1 else {"on_guard": NO_LANE}).items():
            if label in self.exits:
                code.begin(label)
                code.do(f"ret i32 {other}")
        self.lines += len(code.lines)
        self.module.function(f"i32 @{name}(ptr noalias %arguments, ptr noalias %results, ptr noalias %work)", code)

    def cut(self) -> None:
        """End the function here and continue in a new one, in a separate module."""
        if self.width > 1:
            self._store_mask(self.held, "%work")
        self.end_function("piece")
        self.pieces.append(self.module)
        self.exits = set()
        self.computed = {}
        count = self.code._count
        self.module = Module(fast_math=self.fast_math, shares_kernels=self.level == 0)
        self.code = Code(self.module, self.width)
        self.code._count = count
        for name, write in self._anchors:
            self._at_the_beginning(write, name)
        if self.width > 1:
            self.held = self.code.load("%work", self.code.bit)

    def call_pieces(self) -> None:
        """Write calls of all pieces in order, until one has no result."""
        code = self.code
        for number in range(len(self.pieces)):
            function = self.module.outside(code, number, Piece(number))
            outcome = code.emit(f"call i32 {function}(ptr %arguments, ptr %results, ptr %work)")
            bad, good = code.label(), code.label()
            code.do(f"br i1 {code.emit(f'icmp eq i32 {outcome}, 0')}, label %{good}, label %{bad}")
            code.begin(bad)
            code.do(f"ret i32 {outcome}")
            code.begin(good)

    # Ways out

    def leave_unless_finite(self, numbers: Sequence[Name]) -> None:
        """Let the careful program run if one of the numbers is infinite or NaN."""
        self.exits.add("on_nan")
        one = Simd(self.code, 1)
        for number in numbers:
            size = one.intrinsic("fabs", number)
            self.code.leave_unless(one.compare("olt", size, literal(math.inf)), "on_nan")

    def guard(self, condition: Name, outcome: bool) -> None:
        """Leave the function, or mark the lane as failed, unless the condition has this outcome."""
        self.exits.add("on_guard")
        code = self.code
        if self.width == 1:
            (code.leave_unless if outcome else code.leave_if)(condition, "on_guard")
            return
        simd = Simd(code, self.width)
        if not outcome:
            condition = simd.logic("xor", condition, simd.truth)
        self.held = simd.logic("and", self.held, condition)
        code.leave_unless(simd.any(self.held), "on_guard")

    def one_point_only(self, what: str) -> None:
        """Give up if several points run at once: no code for lanes is known."""
        if self.width > 1:
            raise NotInLanesError(what)

    def finish_lanes(self, has_nan: Name) -> Name:
        """Note which lanes have a result, and in which a derivative is NaN; returns the former."""
        simd, held = Simd(self.code, self.width), self.held
        done = simd.logic("and", held, simd.logic("xor", has_nan, simd.truth)) if has_nan else held
        failed = simd.logic("xor", held, done)
        self.held = done
        self._store_mask(done, "%work")
        self._store_mask(failed, self.code.emit("getelementptr inbounds i8, ptr %work, i64 1"))
        return done

    def lanes_outcome(self) -> Name:
        """The two masks of `finish_lanes` as the function's return value."""
        return self.code.emit(f"zext i16 {self.code.load('%work', 'i16')} to i32")

    def _store_mask(self, mask: Name, place: Name) -> None:
        self.code.do(f"store {self.code.bit} {mask}, ptr {place}, align 1")

    def leave_on_error(self) -> str:
        """The label of the exit without a result."""
        self.exits.add("on_error")
        return "on_error"

    # Memory

    def allocate(self, shape: Shape, boolean: bool = False, *, for_vectors: bool = False) -> Buffer:
        """Memory for an array; with `for_vectors`, in the order in which fused loops read it best."""
        block = self.workspace.take(max(math.prod(shape), 1))
        self._values[block] = 0
        return (Buffer.for_vectors if for_vectors else Buffer.packed)("%work", block[1], shape, boolean)

    def retain(self, location: Location) -> None:
        """Count one more value in this memory."""
        block = self._block_of(location)
        if block is not None:
            self._values[block] += 1

    def release(self, location: Location) -> None:
        """Count one value less; free the memory after the last."""
        block = self._block_of(location)
        if block is not None:
            self._values[block] -= 1
            if self._values[block] == 0:
                del self._values[block]
                self.workspace.give_back(block)

    def is_unshared(self, location: Location) -> bool:
        """Whether this value is contiguous and alone in its memory."""
        block = self._block_of(location)
        return (
            block is not None and self._values[block] == 1 and isinstance(location, Buffer) and location.is_contiguous
        )

    def _block_of(self, location: Location) -> tuple[int, int] | None:
        if not isinstance(location, Buffer) or location.base != "%work":
            return None
        return next((block for block in self._values if 0 <= location.offset - block[1] < block[0]), None)

    def fused_loops(self, shape: Shape) -> FusedLoops:
        """Loops over an index space, which threads may share."""

        def scratch(count: int) -> Name:
            block = self.workspace.take(count)
            self.workspace.give_back(block)  # the loop is over before another operation can take it
            return Buffer.packed("%work", block[1], (count,)).pointer(self.code)

        return FusedLoops(self.code, shape, self.helpers, scratch)

    def pointer(self, array: Buffer) -> Name:
        """The address of an array's first element."""
        return array.pointer(self.code)

    def result(self, array: Buffer) -> Location:
        """A result in memory, or in registers if it is small."""
        return Registers(self.elements(array), array.shape, array.boolean) if array.size <= REGISTER_LIMIT else array

    def elements(self, location: Location) -> tuple[Name, ...]:
        """The elements in registers."""
        if not isinstance(location, Buffer):
            return location.elements
        code, names = self.code, []
        for k in range(location.size):
            number = code.load(location.pointer(code, location.offset_of(k)))
            names.append(self.as_boolean(number) if location.boolean else number)
        return tuple(names)

    def first(self, location: Location) -> Name:
        """The first element in a register."""
        return self.elements(location)[0] if isinstance(location, Buffer) else location.element

    def as_boolean(self, number: Name) -> Name:
        """A boolean from its form in memory."""
        return self.code.emit(f"fcmp une {self.code.real} {number}, {self.code.constant(0.0)}")

    def as_double(self, name: Name, boolean: bool) -> Name:
        """A boolean as 1.0 or 0.0, its form in memory; numbers as they are."""
        return self.code.emit(f"uitofp {self.code.bit} {name} to {self.code.real}") if boolean else name

    def store(self, names: Sequence[Name], target: Buffer, boolean: bool = False) -> None:
        """Write elements, row by row."""
        for k, name in enumerate(names):
            self.code.store(self.as_double(name, boolean), target.pointer(self.code, target.offset_of(k)))

    def in_memory(self, location: Location) -> Buffer:
        """The value in memory, copied there if necessary."""
        if isinstance(location, Buffer):
            return location
        if isinstance(location, Registers):
            variable = self.code.variable(f"[{max(location.size, 1)} x {self.code.real}]")
            array = Buffer.packed(variable, 0, location.shape, location.boolean)
            self.store(location.elements, array, location.boolean)
            return array
        array = self.allocate(location.shape, location.boolean)
        self.copy(location, array)
        return array

    def contiguous(self, location: Location) -> Buffer:
        """The value in memory, row by row."""
        array = self.in_memory(location)
        if array.is_contiguous:
            return array
        copy = self.allocate(location.shape, location.boolean)
        self.copy(array, copy)
        return copy

    def copy(self, location: Location, target: Buffer) -> None:
        """Write a value into memory."""
        if isinstance(location, Registers):
            self.store(location.elements, target, location.boolean)
            return
        self.one_point_only("loops over arrays")
        if isinstance(location, Buffer) and is_transposed(location, target):
            for part in copy_blocks(self.code, location, target):
                self.copy(*(view_of(array, operator.itemgetter(part)) for array in (location, target)))
            return
        fused = self.fused_loops(target.shape)
        fused.steps.append(FusedStep(0, lambda k, x: x, [location], location.boolean, [target]))
        fused.emit()

    def fill(self, target: Buffer, number: Name) -> None:
        """Set all elements to one number."""
        if target.size <= REGISTER_LIMIT:
            self.store((number,) * target.size, target)
        else:
            self.copy(Uniform(number, target.shape), target)

    # Constants

    def constant(self, value: Value) -> Location:
        """The location of a constant number or array."""
        if isinstance(value, (bool, np.bool_)):
            return Registers((self._constant(value, True),), (), True)
        if isinstance(value, float):
            return Registers((self._constant(value, False),), ())
        known = self._constants.get(id(value))
        if known is None:
            known = self._constants[id(value)] = (value, self._array(value))
        return known[1]

    def _constant(self, x: Any, boolean: bool) -> Name:
        if not boolean:
            return self.code.constant(float(x))
        name = "true" if x else "false"
        return name if self.width == 1 else f"splat (i1 {name})"

    def _array(self, value: Any) -> Location:
        boolean = value.dtype.kind == "b"
        if value.size and not any(value.strides):
            return Uniform(self._constant(value[(0,) * value.ndim], boolean), value.shape, boolean)
        if value.size <= REGISTER_LIMIT:
            return Registers(tuple(self._constant(x, boolean) for x in value.ravel()), value.shape, boolean)
        self.one_point_only("an array of constants")
        stored = np.ascontiguousarray(value, np.float64)
        base = self.anchor(lambda code: code.module.outside(code, id(stored), stored))
        return Buffer.packed(base, 0, value.shape, boolean)
