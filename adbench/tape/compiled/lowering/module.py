"""Lower a recording to a module with one function, which takes arguments and results by address.

    i32 run(ptr arguments, ptr results, ptr work)

`arguments` holds each input's number, or the address of its elements. `results` does the same for each part of the
value and of the derivatives. It returns an `Outcome`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from adbench.tape.compiled.kernels.simd import Code, Module
from adbench.tape.compiled.lowering.block import Block
from adbench.tape.compiled.lowering.emission import Emission
from adbench.tape.compiled.lowering.expansion import expanded
from adbench.tape.compiled.lowering.loops.parallel_loop import Helpers
from adbench.tape.compiled.lowering.storage import Buffer, Location, Registers, Shape, Uniform, as_double
from adbench.tape.compiled.trace.record_function import Recording
from adbench.tape.compiled.trace.symbol import Symbol
from adbench.tape.compiled.trace.symbol_rules import ANY, PREDICATES
from adbench.tape.core.rule import Value
from adbench.tape.values import shape_of

PIECES = (5_000, 400, 400, 400)
"""The number of instructions after which a program is cut, by level of optimisation. LLVM takes more than twice as long
for a function of twice the length, and at least a millisecond per function."""


class Outcome(IntEnum):
    """Return values of `run`."""

    DONE = 0
    GUARD = 1
    """A guard failed: try another recording."""
    NAN = 2
    """A derivative is NaN: run the careful program."""
    ERROR = 3
    """No result: a matrix is singular, or a call into Python failed."""


@dataclass(frozen=True)
class Lowered:
    """The code of a recording, for LLVM.

    modules           the pieces of a long program, if any, then the module with `run`, which calls them in order
    inputs, results   shapes, () for a number
    work              doubles of workspace
    python_calls      names of rules called in Python
    """

    modules: tuple[Module, ...]
    inputs: tuple[Shape, ...]
    results: tuple[Shape, ...]
    work: int
    python_calls: tuple[str, ...]
    lines: int


def lower(recording: Recording, *, fast_math: bool = False, level: int = 2, helpers: Helpers | None = None) -> Lowered:
    """Write the function `run` for a recording, to optimise to this level; helpers share loops over large arrays."""
    emission = Emission(fast_math=fast_math, level=level, helpers=helpers)
    outputs: list[Value] = [*recording.value, *recording.parts]
    has_nan = [ANY(PREDICATES[np.isnan](s)) if s.shape else PREDICATES[np.isnan](s) for s in recording.checked]
    conditions = [c for c, _ in recording.guards]
    every = [*outputs, *has_nan, *conditions]
    trace, inputs, every = expanded(recording.trace, recording.inputs, every)
    first, second = len(outputs), len(outputs) + len(has_nan)
    outputs, has_nan, conditions = every[:first], every[first:second], every[second:]
    guards = list(zip(conditions, (outcome for _, outcome in recording.guards), strict=True))
    given = {id(s): _argument(emission, k, s) for k, s in enumerate(inputs)}
    targets: dict[int, Buffer] = {}
    outs: list[Buffer | None] = []
    for k, y in enumerate(outputs):
        shape = shape_of(y)
        out = Buffer.packed(_slot(emission, "%results", k), 0, shape) if shape else None
        outs.append(out)
        if out is not None and type(y) is Symbol and y.number not in targets and not y.boolean:
            targets[y.number] = out
    block = Block(emission, trace, [*outputs, *has_nan], given, targets, guards, piece=PIECES[level])
    locations = block.lower()
    code = emission.code
    for k, (location, out) in enumerate(zip(locations[: len(outputs)], outs, strict=True)):
        if out is None:
            name = emission.elements(location)[0]
            code.store(as_double(code, name, location.boolean), code.element("%results", str(k)))
        elif location != out:
            emission.copy(location, out)
    _check_nan(emission, locations[len(outputs) :])
    if emission.pieces:
        emission.cut()
        _run_pieces(emission)
    emission.end_function("run")
    return Lowered(
        (*emission.pieces, emission.module),
        tuple(s.shape for s in recording.inputs),
        tuple(shape_of(y) for y in outputs),
        emission.workspace.size,
        tuple(emission.python_calls),
        emission.lines,
    )


@dataclass(frozen=True)
class Piece:
    """A placeholder, in an environment, for the address of the function of the piece with this number."""

    number: int


def _run_pieces(emission: Emission) -> None:
    """Write calls of the pieces in order, until one has no result."""
    code = emission.code
    for number in range(len(emission.pieces)):
        function = emission.module.outside(code, number, Piece(number))
        outcome = code.emit(f"call i32 {function}(ptr %arguments, ptr %results, ptr %work)")
        bad, good = code.label(), code.label()
        code.do(f"br i1 {code.emit(f'icmp eq i32 {outcome}, 0')}, label %{good}, label %{bad}")
        code.begin(bad)
        code.do(f"ret i32 {outcome}")
        code.begin(good)


def _slot(emission: Emission, base: str, k: int) -> str:
    """The address in slot k of a table, read at the beginning of the function."""

    def write(code: Code) -> str:
        location = code.emit(f"getelementptr inbounds ptr, ptr {base}, i64 {k}")
        return code.load(location, "ptr")

    return emission.anchor(write)


def _argument(emission: Emission, k: int, symbol: Symbol) -> Location:
    code = emission.code
    if symbol.shape:
        base = _slot(emission, "%arguments", k)
        array = Buffer.packed(base, 0, symbol.shape)
        return array if array.size > 0 else Registers((), symbol.shape)
    return Registers((code.load(code.element("%arguments", str(k))),), ())


def _check_nan(emission: Emission, locations: list[Location]) -> None:
    names = [emission.elements(p)[0] for p in locations if not isinstance(p, Uniform)]
    if not names:
        return
    code = emission.code
    total = names[0]
    for name in names[1:]:
        total = code.emit(f"or i1 {total}, {name}")
    emission.exits.add("on_nan")
    code.leave_if(total, "on_nan")
