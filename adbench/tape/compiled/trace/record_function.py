"""Record a function for compilation: run f once on symbols, then the engine's own sweep.

The result is a `Recording`: a trace of value and derivatives, the symbols of its inputs and outputs, and its guards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adbench.tape.compiled.sparse.compression import Compressed, Pattern, Product, blocks, hessian_of, jacobian_of
from adbench.tape.compiled.trace.loop_rule import SCAN, live, pull_back, spread, sweep_back
from adbench.tape.compiled.trace.recorded_loops import emitter
from adbench.tape.compiled.trace.symbol import DependsOnDataError, Symbol
from adbench.tape.compiled.trace.trace import Trace, made_by
from adbench.tape.core.forward import Dual, tangent_of
from adbench.tape.core.functionals import Function, NotScalarError
from adbench.tape.core.rule import Active, Value
from adbench.tape.levels import NotCompilableError, current, forward_level, nested
from adbench.tape.rules.shapes import reshape
from adbench.tape.trees import described, first, is_scalar, matching, outputs
from adbench.tape.values import has_nan, settle, shape_of

OPERATORS = ("value", "gradient", "value_and_gradient", "vjp", "jvp", "hvp", "jacobian", "hessian")
WITH_VECTOR = ("vjp", "jvp", "hvp")
WITH_MATRIX = ("jacobian", "hessian")


@dataclass(frozen=True)
class Recording:
    """A program for all points at which its guards hold.

    inputs    the symbols of a call's numbers and arrays, in order
    value     the parts of the function's value; `rebuild` assembles them
    parts     the derivatives: of the wanted inputs, or of the value's parts (jvp)
    checked   symbols in which a NaN requires the careful program
    guards    (a boolean symbol, its required value)
    pattern   of a Jacobian or Hessian, or None
    blocks    the patterns of its blocks, for sparse results
    products  the number of products that compute it
    """

    trace: Trace
    inputs: tuple[Symbol, ...]
    value: tuple[Value, ...]
    rebuild: Callable[[Sequence[Any]], Any]
    parts: tuple[Value, ...]
    checked: tuple[Symbol, ...]
    guards: tuple[tuple[Symbol, bool], ...]
    pattern: Pattern | None = None
    blocks: tuple[Pattern, ...] = ()
    products: int = 0


@dataclass(frozen=True)
class RecordingRequest:
    """A request to record a function.

    f          takes a call's numbers and arrays as one flat list
    examples   those of the first call: floats, float64 arrays, and arrays of integers or booleans
    active     whether each is differentiated
    vector     for `vjp` the weights in their structure, for `jvp` and `hvp` a direction for each active input
    sparse     for `jacobian` and `hessian`: each block of the derivative is the entries of its pattern
    """

    f: Function
    name: str
    operator: str
    examples: tuple[Any, ...]
    active: tuple[bool, ...]
    vector: Any
    checkpointed: bool
    sparse: bool = False


def record(request: RecordingRequest, *, careful: bool, loops: bool = True) -> Recording:
    """Run the function on symbols. Raises NotCompilableError, or the function's own errors."""
    before = current.emit_loop, current.careful
    current.emit_loop, current.careful = (emitter(request.checkpointed) if loops else None), careful
    try:
        with nested(), np.errstate(all="ignore"):
            recording = _Recorder(request, careful).run()
    except DependsOnDataError as error:
        raise NotCompilableError(f"{request.name}: {error}") from error
    finally:
        current.emit_loop, current.careful = before
    if not careful and any(not isinstance(x, Active) and has_nan(x) for x in recording.parts):
        return record(request, careful=True, loops=loops)  # a constant 0 · inf: the plain sweep is always wrong
    if _leaks(recording):
        if loops:  # a step stored values outside its state
            return record(request, careful=careful, loops=False)
        raise NotCompilableError(
            f"{request.name}: a value of an inner function is used after it ended; return it instead"
        )
    return recording


def _leaks(recording: Recording) -> bool:
    """Whether a value of a loop's body, or of another level, is used outside of it."""
    trace = recording.trace
    outputs = [*recording.value, *recording.parts, *recording.checked, *(s for s, _ in recording.guards)]
    values = list(outputs)
    for number in live(trace, outputs) if trace.foreign else ():
        operation = made_by(trace[number])
        values += [] if operation is None else operation[1]
    return any(isinstance(x, Active) and not (type(x) is Symbol and x.tape is trace) for x in values)


class _Recorder:
    """Makes one recording."""

    def __init__(self, request: RecordingRequest, careful: bool) -> None:
        self.request = request
        self.trace = Trace(careful=careful)
        self.numbers = [self.leaf(x, a) for x, a in zip(request.examples, request.active, strict=True)]
        self.vectors: list[Symbol] = []

    def leaf(self, example: Any, active: bool) -> int:
        """The number of the record that introduces an input."""
        is_array = isinstance(example, np.ndarray)
        value = settle(example) if is_array else example
        integer = is_array and example.dtype.kind in "iu"
        return self.trace.leaf(shape_of(value), value, active=active, integer=integer).number

    @property
    def given(self) -> list[Any]:
        """The function's arguments, also after it assigned to their elements; for an array of booleans, its truth."""
        symbols = [self.trace[n][1] for n in self.numbers]
        are_booleans = [isinstance(x, np.ndarray) and x.dtype.kind == "b" for x in self.request.examples]
        return [s != 0.0 if is_boolean else s for s, is_boolean in zip(symbols, are_booleans, strict=True)]

    def inputs(self) -> tuple[Symbol, ...]:
        """The current symbols of the inputs; an assignment may have replaced objects."""
        return (*(self.trace[n][1] for n in self.numbers), *self.vectors)

    def vector(self, parts: Sequence[Any]) -> list[Symbol]:
        """Inputs for the vector that the operator takes."""
        self.vectors = [self.trace.leaf(shape_of(p), p, active=True) for p in parts]
        return self.vectors

    def finish(
        self, value: Sequence[Value], rebuild: Any, parts: Sequence[Value], checked: Sequence[Value]
    ) -> Recording:
        """The recording; constant values become plain numbers."""
        value = [y if isinstance(y, Active) else settle(y) for y in value]
        symbols = tuple(c for c in checked if type(c) is Symbol)
        guards = tuple(self.trace.guards)
        return Recording(self.trace, self.inputs(), tuple(value), rebuild, tuple(parts), symbols, guards)

    def run(self) -> Recording:
        operator = self.request.operator
        if operator == "jvp":
            ys, rebuild, tangents = self.along(self.vector(self.directions()))
            return self.finish(ys, rebuild, tangents, tangents)
        if operator == "hvp":
            y, firsts, tangents = self.forward_over_reverse(self.vector(self.directions()))
            return self.finish([y], first, tangents, [*firsts, *tangents])
        if operator == "jacobian":
            return self.jacobian()
        if operator == "hessian":
            return self.hessian()
        y = self.evaluated(operator != "value")
        if operator == "value":
            ys, rebuild = outputs(y)
            return self.finish(ys, rebuild, (), ys)  # f may compute derivatives itself
        if operator == "vjp":
            ys, rebuild = outputs(y)
            weights = self.vector(matching(self.request.vector, ys, f"vjp: w for {self.request.name}"))
            return self.swept(ys, rebuild, weights)
        self.check_scalar(y)
        if self.is_path_of_one_number():
            recording = _Recorder(self.request, careful=False).along_one()
        else:
            recording = self.swept([y], first, [1.0])
        return recording if operator != "gradient" else replace(recording, value=(), rebuild=lambda _parts: None)

    def evaluated(self, is_differentiated: bool) -> Any:
        self.trace.is_differentiated = is_differentiated
        y = self.request.f(self.given)
        self.trace.is_differentiated = False
        return y

    def is_path_of_one_number(self) -> bool:
        """Whether there are loops and only a single number to differentiate in.

        Then a tangent is cheap compared with the loop's state, while a sweep would store all states and need a second
        loop. A careful recording needs a sweep, which handles zero times infinity.
        """
        active = self.active()
        is_one = len(active) == 1 and np.size(active[0]) == 1 and not self.request.checkpointed
        return is_one and not self.trace.careful and any(r[0] is SCAN for r in self.trace)

    def along_one(self) -> Recording:
        """The gradient, from a single tangent of 1."""
        (shape,) = map(np.shape, self.active())
        (y,), _, (slope,) = self.along([np.ones(shape) if shape else 1.0])
        parts = [reshape(slope, shape) if shape else slope]
        return self.finish([y], first, parts, parts)

    def check_scalar(self, y: Any) -> None:
        if not is_scalar(y):
            raise NotScalarError(
                f"gradient: {self.request.name} should return a scalar, got {described(y)}; use jacobian or vjp"
            )

    def swept(self, ys: Sequence[Value], rebuild: Any, weights: Sequence[Value]) -> Recording:
        parts = self.swept_parts(ys, weights)
        return self.finish(ys, rebuild, parts, parts)

    def swept_parts(self, ys: Sequence[Value], weights: Sequence[Value]) -> list[Value]:
        """Σ weights ∂y/∂x for each differentiated input."""
        trace = self.trace
        seeds = [(y, w) for y, w in zip(ys, weights, strict=True) if type(y) is Symbol and y.tape is trace and y.active]
        return sweep_back(
            trace, seeds, [trace[n][1] for n, a in zip(self.numbers, self.request.active, strict=True) if a]
        )

    def active(self) -> list[Any]:
        """The examples of the differentiated inputs."""
        return [x for x, a in zip(self.request.examples, self.request.active, strict=True) if a]

    def directions(self) -> list[Value]:
        """The direction that the call gives."""
        return matching(self.request.vector, self.active(), f"{self.request.operator}: v")

    def duals(self, level: int, tangents: Sequence[Value]) -> list[Any]:
        rest = iter(tangents)
        return [Dual(level, x, next(rest)) if a else x for x, a in zip(self.given, self.request.active, strict=True)]

    def along(self, directions: Sequence[Value]) -> tuple[list[Value], Any, list[Value]]:
        """The function's parts, the function that assembles them, and their tangents."""
        with forward_level() as level:
            ys, rebuild = outputs(self.request.f(self.duals(level, directions)))
        plain = [y.val if isinstance(y, Dual) and y.level == level else y for y in ys]
        return plain, rebuild, [tangent_of(y, level) for y in ys]

    def forward_over_reverse(self, directions: Sequence[Value]) -> tuple[Value, list[Value], list[Value]]:
        """The function, its gradient, and the gradient's tangents, by forward mode over the engine's tape and sweep."""
        active = self.request.active
        result: list[Any] = []

        def of_active(leaves: Sequence[Value]) -> list[Value]:
            rest = iter(leaves)
            result[:] = [self.request.f([next(rest) if a else x for x, a in zip(duals, active, strict=True)])]
            self.check_scalar(result[0])
            return result

        with forward_level() as level:
            duals = self.duals(level, directions)
            points = [d for d, a in zip(duals, active, strict=True) if a]
            gradient = pull_back(of_active, points, [True] * len(points), [1.0])
        y = result[0]
        while isinstance(y, Active) and not y.symbolic:
            y = y.val
        firsts = [g.val if isinstance(g, Dual) else g for g in gradient]
        tangents = [tangent_of(g, level) for g in gradient]
        return y, firsts, [spread(t, shape_of(g)) for t, g in zip(tangents, gradient, strict=True)]

    # Matrices, from products recorded on a separate trace, see `sparse.compression`

    def seeds(self, shapes: Sequence[tuple[int, ...]]) -> tuple[Trace, tuple[Symbol, ...]]:
        """A trace for a linear program, and its inputs."""
        trace = Trace(careful=self.trace.careful, outer=True)
        return trace, tuple(trace.leaf(shape, active=True) for shape in shapes)

    def jacobian(self) -> Recording:
        """Record a Jacobian by products from the right or from the left."""
        shapes = [np.shape(x) for x in self.active()]
        ys, rebuild = outputs(self.evaluated(True))
        ys = [y if isinstance(y, Active) else settle(y) for y in ys]

        def forward() -> Product:
            trace, seeds = self.seeds(shapes)
            return Product(trace, seeds, tuple(self.along(seeds)[2]))

        def reverse() -> Product:
            trace, seeds = self.seeds([shape_of(y) for y in ys])
            return Product(trace, seeds, tuple(self.swept_parts(ys, seeds)), is_transposed=True)

        compressed = jacobian_of(sum(math.prod(shape_of(y)) for y in ys), forward, reverse)
        return self.with_matrix(ys, rebuild, compressed, [], [shape_of(y) for y in ys])

    def hessian(self) -> Recording:
        """Record gradient and Hessian by products of forward mode over reverse mode."""
        shapes = [np.shape(x) for x in self.active()]
        trace, seeds = self.seeds(shapes)
        y, firsts, tangents = self.forward_over_reverse(seeds)
        if any(type(g) is Symbol and g.tape is trace for g in firsts):  # marked as unknown along some directions
            y = self.evaluated(True)
            firsts = self.swept_parts([y], [1.0])
        firsts = [spread(g, shape) for g, shape in zip(firsts, shapes, strict=True)]
        compressed = hessian_of(Product(trace, seeds, tuple(tangents)))
        return self.with_matrix([y], first, compressed, firsts, shapes)

    def with_matrix(
        self, ys: Sequence[Value], rebuild: Any, compressed: Compressed, parts: list[Value], rows: Any
    ) -> Recording:
        """The recording of value, other parts, and the matrix: its entries, or its blocks for values and inputs."""
        columns = [np.shape(x) for x in self.active()]
        patterns: list[Pattern] = []
        if self.request.sparse:
            patterns, matrix = compressed.entries(rows, columns)
            checked = [*parts, *matrix]
        else:
            dense, entries = compressed.matrix()
            matrix = blocks(dense, rows, columns)
            checked = [*parts, entries]
        recording = self.finish(ys, rebuild, [*parts, *matrix], checked)
        return replace(recording, pattern=compressed.pattern, blocks=tuple(patterns), products=compressed.count)
