"""Lower a recording to a module with one function, which takes arguments and results by address.

    i32 run(ptr arguments, ptr results, ptr work)

`arguments` holds each input's number, or the address of its elements. `results` does the same for each part of the
value and of the derivatives. It returns a `ReturnCode`.

With a width, `run` computes several points at once, one in each SIMD lane. Then `arguments` and `results` hold the
elements themselves, each as a vector over the points, and `work` begins with the mask of the lanes that are wanted.
`run` writes only the lanes in which all guards hold and no derivative is NaN. It returns the mask of these lanes, plus
256 times the mask of those with a NaN.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from adbench.tape.compiled.lowering.block import Block
from adbench.tape.compiled.lowering.emission import Emission
from adbench.tape.compiled.lowering.expansion import expanded
from adbench.tape.compiled.lowering.loops.loop_nest import Helpers
from adbench.tape.compiled.lowering.storage import Buffer, Location, Registers, Shape, Uniform
from adbench.tape.compiled.trace.record_function import Recording
from adbench.tape.compiled.trace.symbol import ANY, PREDICATES, Symbol
from adbench.tape.core.rule import Value
from adbench.tape.machine.simd import Code, Module, Name
from adbench.tape.values import shape_of

PIECES = (5_000, 400, 400, 400)
"""The number of instructions after which a program is cut, by level of optimisation. LLVM takes more than twice as long
for a function of twice the length, and at least a millisecond per function."""


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

    @property
    def instructions(self) -> int:
        """The number of instructions in all functions, kernels included."""
        return sum(text.count("\n  ") for module in self.modules for text in module.functions)


def lower(
    recording: Recording,
    *,
    fast_math: bool = False,
    level: int = 2,
    helpers: Helpers | None = None,
    width: int = 1,
) -> Lowered:
    """Write the function `run` for a recording, to optimise to this level; helpers share loops over large arrays.

    Raises NotInLanesError if the program cannot run for this number of points at once.
    """
    careful = recording.trace.careful
    emission = Emission(fast_math=fast_math, level=level, helpers=helpers, width=width, careful=careful)
    outputs: list[Value] = [*recording.value, *recording.parts]
    has_nan = [ANY(PREDICATES[np.isnan](s)) if s.shape else PREDICATES[np.isnan](s) for s in recording.checked]
    conditions = [c for c, _ in recording.guards]
    every = [*outputs, *has_nan, *conditions]
    trace, inputs, every = expanded(recording.trace, recording.inputs, every)
    first, second = len(outputs), len(outputs) + len(has_nan)
    outputs, has_nan, conditions = every[:first], every[first:second], every[second:]
    guards = list(zip(conditions, (outcome for _, outcome in recording.guards), strict=True))
    if width == 1:
        arguments = {id(s): _argument(emission, k, s) for k, s in enumerate(inputs)}
    else:
        arguments = dict(zip(map(id, inputs), _arguments_in_lanes(emission, inputs), strict=True))
    targets: dict[int, Buffer] = {}
    outs: list[Buffer | None] = []
    for k, y in enumerate(outputs):
        shape = shape_of(y)
        out = Buffer.packed(_slot(emission, "%results", k), 0, shape) if shape and width == 1 else None
        outs.append(out)
        if out is not None and type(y) is Symbol and y.number not in targets and not y.boolean:
            targets[y.number] = out
    locations = Block(emission, trace, [*outputs, *has_nan], arguments, targets, guards, piece=PIECES[level]).lower()
    code, results, nans = emission.code, locations[: len(outputs)], locations[len(outputs) :]
    if width > 1:
        _write_lanes(emission, results, emission.finish_lanes(_any_nan(emission, nans)))
    else:
        for k, (location, out) in enumerate(zip(results, outs, strict=True)):
            if out is None:
                name = emission.first(location)
                code.store(emission.as_double(name, location.boolean), code.element("%results", str(k)))
            elif location != out:
                emission.copy(location, out)
        if is_nan := _any_nan(emission, nans):
            emission.exits.add("on_nan")
            code.leave_if(is_nan, "on_nan")
    if emission.pieces:
        emission.cut()
        emission.call_pieces()
    emission.end_function("run", emission.lanes_outcome() if width > 1 else "0")
    return Lowered(
        (*emission.pieces, emission.module),
        tuple(s.shape for s in recording.inputs),
        tuple(shape_of(y) for y in outputs),
        emission.workspace.size,
        tuple(emission.python_calls),
    )


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


def _arguments_in_lanes(emission: Emission, inputs: Sequence[Symbol]) -> Iterator[Location]:
    """The elements of all inputs, one after the other."""
    first = 0
    for symbol in inputs:
        array = Buffer.packed("%arguments", first, symbol.shape)
        first += array.size
        yield array if symbol.shape else Registers(emission.elements(array), ())


def _write_lanes(emission: Emission, locations: Sequence[Location], done: Name) -> None:
    """Write the elements of all results, one after the other, in these lanes."""
    code = emission.code
    kinds = f"void {{}}({code.real}, ptr, i32, {code.bit})"
    store = emission.module.declare(f"llvm.masked.store.v{code.width}f64.p0", kinds)
    first = 0
    for location in locations:
        for name in emission.elements(location):
            number = emission.as_double(name, location.boolean)
            pointer = code.element("%results", str(first))
            code.do(f"call void {store}({code.real} {number}, ptr {pointer}, i32 8, {code.bit} {done})")
            first += 1


def _any_nan(emission: Emission, locations: Sequence[Location]) -> Name:
    """Whether one of the conditions holds; "" without conditions."""
    names = [emission.first(p) for p in locations if not isinstance(p, Uniform)]
    if not names:
        return ""
    code = emission.code
    total = names[0]
    for name in names[1:]:
        total = code.emit(f"or {code.bit} {total}, {name}")
    return total
