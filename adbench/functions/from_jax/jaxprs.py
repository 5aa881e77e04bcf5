"""jax functions for the oracle: traced to a jaxpr, which then runs on the oracle's numbers.

`jax_text` traces a function at its examples and builds a `JaxprProgram`: a list of steps, each a rule of
`jax_primitives`. Calls (`jit`, `checkpoint`, `custom_jvp`, `custom_vjp`) are inlined, so custom derivatives are not
used. Loops and branches follow comparisons of the given numbers. Values that depend only on integers, booleans and
random keys are computed once, by jax.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from adbench.functions.declared_constants import OF_A_DRAW, OF_A_SOLVER
from adbench.functions.from_jax.jax_arrays import Equation
from adbench.functions.from_jax.jax_primitives import COMPLEX_RULES, EXACT, NATIVE, RULES, STRUCTURAL
from adbench.functions.low_precision import WIDENS, jax_in_double, jaxprs_in, lines_of, low_type, scan_counts
from adbench.functions.low_precision import widened as in_double
from adbench.model.errors import Unsupported
from adbench.oracle.diagnosis.branches import STOPPED
from adbench.oracle.enclosures.recorded import EnclosedArray
from adbench.oracle.series import ball
from adbench.oracle.series.algebra.positions import boxed
from adbench.oracle.series.arrays import RealArray, nearest
from adbench.vocabulary import words

Step = tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...], bool]
"""function(xp, *inputs), the locations of inputs and of outputs, and whether it returns a list."""

CALLS = words(
    "call checkpoint closed_call composite core_call custom_jvp_call custom_lin_call custom_vjp_call "
    "custom_vjp_call_jaxpr custom_vmap_call jit pjit remat remat2 remat_call"
)
"""Primitives that only evaluate a jaxpr."""

OF_CALLS = ("jaxpr", "call_jaxpr", "fun_jaxpr", "call")
"""The parameters that hold the jaxpr."""

IDENTITIES = words("device_put optimization_barrier pin pvary reshard sharding_constraint unpin")
"""Primitives that return their inputs; they concern devices."""

OF_A_ROOT = "jax.lax.custom_root, whose derivative is that of an equation and not of its solver"
MOST_UNKNOWNS, CONVERGED = 64, 1e-11
"""Of a linear system that is solved by iterations in jax, and exactly here; the largest relative error of its solution
from which a derivative is judged."""

OF_BITS = words("bitcast_convert_type nextafter")
"""Primitives that depend on the bits of a type."""

PRINTING = frozenset({"debug_callback", "debug_print"})


def jax_text(flat: Callable[..., Any], examples: Sequence[Any]) -> Callable[..., Any]:
    """text(xp, *leaves): ``flat`` on the numbers of the oracle's namespace xp.

    flat        a function of arrays and numbers that jax can trace; only shape and dtype of its leaves matter
    examples    the leaves in numpy, float64: the function is traced for double precision

    Raises Unsupported for a primitive without a rule, for single precision inside the function unless `WIDENS`, and for
    a function that jax cannot trace. If only one branch of a `cond` has such a primitive, the text raises it.
    """
    import jax

    with jax_in_double():
        try:
            closed = jax.make_jaxpr(flat)(*map(np.asarray, examples))
        except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
            raise Unsupported(f"jax cannot trace the function: {str(error).splitlines()[0]}") from error
        reads_bits = any(_is_bitcast(equation, to_floats=False) for equation in _equations(closed.jaxpr))
        program = JaxprProgram(closed.jaxpr, closed.consts, [False] * len(examples), Manner(reads_bits=reads_bits))

    def text(xp: Any, *leaves: Any) -> Any:
        with jax_in_double():
            found = program.run(xp, leaves)
        results = [x.view(RealArray) if isinstance(x, np.ndarray) and x.dtype == object else x for x in found]
        return results[0] if len(results) == 1 else tuple(results)

    return text


# Kinds of values -------------------------------------------------------------------------------------------------


def _kind(aval: Any) -> str:
    """f, c: double precision, real or complex; low: lower precision, if it is refused; n: integers, booleans, keys,
    tokens."""
    import jax.numpy as jnp

    dtype = getattr(aval, "dtype", None)
    if dtype is None or not isinstance(dtype, np.dtype):
        return "n"
    if not jnp.issubdtype(dtype, jnp.inexact):
        return "n"
    if WIDENS.get():
        return "c" if dtype.kind == "c" else "f"
    return {"float64": "f", "complex128": "c"}.get(dtype.name, "low")


def _is_active_kind(aval: Any) -> bool:
    return _kind(aval) in ("f", "c")


@dataclass(frozen=True)
class Manner:
    """Settings for running a jaxpr and its inner jaxprs.

    stops        whether `stop_gradient` makes a constant, which is false inside functions with custom derivatives
    reads_bits   whether integers may hold the bits of active floats, so that bits must not become floats
    """

    stops: bool = True
    reads_bits: bool = False


def _is_bitcast(equation: Any, *, to_floats: bool) -> bool:
    if equation.primitive.name != "bitcast_convert_type":
        return False
    return _is_active_kind(equation.outvars[0].aval if to_floats else equation.invars[0].aval)


_running = SimpleNamespace(equation=None)
"""The equation that is evaluated now."""


def traced_lines() -> list[tuple[str, int]]:
    """File and line of every Python frame that traced the equation that is evaluated now, the innermost first."""
    return lines_of(_running.equation)


class JaxprProgram:
    """A jaxpr as steps over numbered locations, each with a `Real`, an array of them, or a native value.

    jaxpr, consts   from jax
    fixed           for each input, whether it is independent of the function's leaves
    manner          settings, also for inner jaxprs
    """

    def __init__(self, jaxpr: Any, consts: Sequence[Any], fixed: Sequence[bool], manner: Manner) -> None:
        self._size = 0
        self._steps: list[Step] = []
        self._known: dict[int, Any] = {}
        self._kinds: dict[int, str] = {}
        self._fixed: set[int] = set()
        self._made_by: dict[int, tuple[Any, tuple[int, ...], int]] = {}
        self._unstopped: dict[int, int] = {}
        self._manner = manner
        self._lifted: dict[Any, list[Any]] = {}
        self._inputs = [self._place(var.aval) for var in jaxpr.invars]
        self._fixed.update(place for place, is_fixed in zip(self._inputs, fixed, strict=True) if is_fixed)
        self._outputs = self._written_out(jaxpr, consts, self._inputs)
        self._steps = _needed(self._steps, self._outputs)

    # Evaluation --------------------------------------------------------------------------------------------------

    def run(self, xp: Any, inputs: Sequence[Any]) -> list[Any]:
        """The outputs for these inputs."""
        places = self._constants(xp).copy()
        for place, value in zip(self._inputs, inputs, strict=True):
            places[place] = self._number(xp, place, value)
        for function, sources, targets, several in self._steps:
            _running.equation = self._made_by[targets[0]][0] if targets else None
            found = function(xp, *[places[k] for k in sources])
            if several:
                for target, value in zip(targets, found, strict=True):
                    places[target] = value
            else:
                places[targets[0]] = found
        return [places[place] for place in self._outputs]

    def _number(self, xp: Any, place: int, value: Any) -> Any:
        """An input in this class's representation."""
        if self._kinds[place] in ("n", "low") or type(value) is xp.number:
            return value
        if isinstance(value, np.ndarray) and value.dtype == object:
            return value[()]
        return xp.reals(value)

    def _constants(self, xp: Any) -> list[Any]:
        """All locations, with constants filled in, made once for each kind of numbers."""
        key = xp.number, type(ball.constant(1))
        if key not in self._lifted:
            made: list[Any] = [None] * self._size
            for place, value in self._known.items():
                made[place] = xp.reals(in_double(value)) if self._kinds[place] in ("f", "c") else value
            self._lifted[key] = made
        return self._lifted[key]

    # Construction ------------------------------------------------------------------------------------------------

    def _place(self, aval: Any, known: Any = None, fixed: bool = False) -> int:
        place, self._size = self._size, self._size + 1
        self._kinds[place] = _kind(aval)
        if known is not None:
            self._known[place] = known
        if fixed or known is not None:
            self._fixed.add(place)
        return place

    def _written_out(self, jaxpr: Any, consts: Sequence[Any], inputs: Sequence[int]) -> list[int]:
        """Append the steps of a jaxpr on these locations; returns the locations of its outputs."""
        where = dict(zip(jaxpr.invars, inputs, strict=True))
        for var, value in zip(jaxpr.constvars, consts, strict=True):
            where[var] = self._place(var.aval, _native(var.aval, value))

        def place_of(atom: Any) -> int:
            if hasattr(atom, "val"):
                return self._place(atom.aval, _native(atom.aval, atom.val))
            found: int = where[atom]
            return found

        for equation in jaxpr.eqns:
            made = self._emitted(equation, tuple(map(place_of, equation.invars)))
            where.update(zip(equation.outvars, made, strict=True))
        return [place_of(atom) for atom in jaxpr.outvars]

    def _emitted(self, equation: Any, sources: tuple[int, ...]) -> list[int]:
        """The locations of an equation's results."""
        name, params = equation.primitive.name, equation.params
        fixed = all(place in self._fixed for place in sources)
        if name in PRINTING:
            return []
        if name in IDENTITIES:
            return list(sources)
        if name == "stop_gradient" and not self._manner.stops:
            return list(sources)
        folded = self._folded(equation, sources)
        if folded is not None:
            return folded
        if name in CALLS:
            return self._called(equation, sources)
        if name == "custom_linear_solve" and not _iterates(params["jaxprs"].solve.jaxpr):
            return self._linear_solve(params, sources)
        if name == "cond" and sources[0] in self._known:
            branch = _chosen(params["branches"], self._known[sources[0]])
            return self._written_out(branch.jaxpr, branch.consts, sources[1:])
        if name not in RULES and name not in LOOPS:
            inside = _inside(equation)
            if inside is not None:
                return self._written_out(inside.jaxpr, inside.consts, sources)
            if name == "call_hi_primitive":
                made = type(params["_prim"]).__name__
                raise Unsupported(OF_A_ROOT if made == "CustomRoot" else f"jax's primitive `{made}`")
        function = self._function(equation, fixed, sources)
        targets = [self._place(var.aval, fixed=fixed) for var in equation.outvars]
        self._steps.append((function, sources, tuple(targets), equation.primitive.multiple_results))
        for number, target in enumerate(targets):
            self._made_by[target] = equation, sources, number
        return targets

    def _folded(self, equation: Any, sources: Sequence[int]) -> list[int] | None:
        """The results of an equation of known values that jax computes exactly, or that are not float64."""
        if any(place not in self._known for place in sources) or not equation.outvars:
            return None
        name = equation.primitive.name
        values = [self._known[place] for place in sources]
        floats_in = any(_is_active_kind(var.aval) for var in equation.invars)
        floats_out = any(_is_active_kind(var.aval) for var in equation.outvars)
        simple = name not in CALLS and name not in LOOPS
        if floats_in and not (simple and (name in EXACT or name not in RULES)):
            return None
        if floats_out and not simple:
            return None
        found = _evaluated(equation, values)
        return [
            self._place(var.aval, _native(var.aval, value))
            for var, value in zip(equation.outvars, found, strict=True)
        ]  # fmt: skip

    def _called(self, equation: Any, sources: tuple[int, ...]) -> list[int]:
        """The steps of a call, inlined."""
        params, manner = equation.params, self._manner
        called = next(params[key] for key in OF_CALLS if key in params)
        jaxpr, consts = _opened(called)
        if getattr(getattr(jaxpr, "debug_info", None), "func_name", "") == "_custom_root":
            raise Unsupported(OF_A_ROOT)
        if equation.primitive.name.startswith("custom"):
            self._manner = replace(manner, stops=False)
        try:
            return self._written_out(jaxpr, consts, sources)
        finally:
            self._manner = manner

    def _linear_solve(self, params: Any, sources: Sequence[int]) -> list[int]:
        """x = solve(b). jax stops the gradients of values that `solve` uses, since it differentiates the equation
        instead."""
        solve, lengths = params["jaxprs"].solve, params["const_lengths"]
        first, total = lengths.matvec + lengths.vecmat, sum(lengths)
        used = [self._without_stops(place) for place in sources[first : first + lengths.solve]]
        return self._written_out(solve.jaxpr, solve.consts, [*used, *sources[total:]])

    def _without_stops(self, place: int) -> int:
        """The location of the same value, active despite a `stop_gradient` on its way."""
        if place not in self._made_by:
            return place
        if place not in self._unstopped:
            equation, sources, number = self._made_by[place]
            if equation.primitive.name == "stop_gradient":
                self._unstopped[place] = self._without_stops(sources[0])
            else:
                moving = tuple(map(self._without_stops, sources))
                results = self._emitted(equation, moving) if moving != sources else None
                self._unstopped[place] = place if results is None else results[number]
        return self._unstopped[place]

    def _function(self, equation: Any, fixed: bool, sources: Sequence[int]) -> Callable[..., Any]:
        """The function that computes an equation's results from its inputs."""
        name: str = equation.primitive.name
        if name == "custom_linear_solve":
            return _solved(equation, [place in self._fixed for place in sources], self._manner)
        if name in LOOPS:
            return LOOPS[name](equation.params, [place in self._fixed for place in sources], self._manner)
        avals = [var.aval for var in (*equation.outvars, *equation.invars)]
        kinds = set(map(_kind, avals))
        described = _described(equation)
        if kinds <= {"n", "low"}:  # constants, or chosen from constants: no active number becomes low
            if equation.effects:
                raise Unsupported(f"jax's primitive `{name}`")
            return _computed(described)
        lows = [_kind(var.aval) == "low" for var in equation.invars]
        if "low" in map(_kind, avals[: len(equation.outvars)]):
            found = next(aval.dtype for aval in avals if _kind(aval) == "low")
            raise Unsupported(f"the function computes in {found.name} inside: jax's primitive `{name}`")
        if name in OF_BITS and any(low_type(getattr(aval, "dtype", "")) for aval in avals):
            raise Unsupported(f"jax's primitive `{name}` of numbers below float64")
        if _is_bitcast(equation, to_floats=True) and self._manner.reads_bits:
            raise Unsupported("jax's primitive `bitcast_convert_type` to a floating-point number")
        if name not in RULES:
            if fixed:
                return _in_double_precision(described)
            raise Unsupported(OF_A_DRAW if name == "random_gamma" else f"jax's primitive `{name}`")
        if "c" in kinds and name not in COMPLEX_RULES:
            raise Unsupported(f"jax's primitive `{name}` of complex numbers")
        if name == "reduce_precision" and (
            described.params["exponent_bits"] < 11 or described.params["mantissa_bits"] < 52
        ):
            raise Unsupported(f"the function computes with fewer than 64 bits inside: jax's primitive `{name}`")
        rule = RULES[name]
        if not any(lows):
            return lambda xp, *inputs: rule(xp, described, *inputs)

        def widening(xp: Any, *inputs: Any) -> Any:
            wide = (xp.reals(in_double(x)) if low else x for x, low in zip(inputs, lows, strict=True))
            return rule(xp, described, *wide)

        return widening


def _needed(steps: Sequence[Step], outputs: Sequence[int]) -> list[Step]:
    """The steps on which these locations depend. Others may be undefined, like the root of an unused residual."""
    wanted, found = set(outputs), []
    for step in reversed(steps):
        if not wanted.isdisjoint(step[2]):
            wanted.update(step[1])
            found.append(step)
    return found[::-1]


def _native(aval: Any, value: Any) -> Any:
    """A constant in numpy; keys remain jax's."""
    dtype = getattr(aval, "dtype", None)
    if not isinstance(dtype, np.dtype):
        return value
    return np.asarray(value, dtype=dtype)[()]


def _described(equation: Any) -> Equation:
    return Equation(
        equation.primitive.name,
        equation.params,
        [var.aval for var in equation.invars],
        [var.aval for var in equation.outvars],
        equation.primitive.bind,
    )


def _evaluated(equation: Any, values: Sequence[Any]) -> Sequence[Any]:
    """The results of an equation in jax, or in numpy if that is equal and faster."""
    import jax

    with jax.ensure_compile_time_eval():
        found = _computed(_described(equation))(None, *values)
    return found if equation.primitive.multiple_results else [found]


def _computed(equation: Equation) -> Callable[..., Any]:
    """An equation of whole numbers, or one of `EXACT`, by numpy if it has the function, else by jax."""
    name, dtypes = equation.name, [aval.dtype for aval in equation.outputs]
    if name in STRUCTURAL and all(isinstance(aval.dtype, np.dtype) for aval in equation.inputs):
        return lambda xp, *inputs: STRUCTURAL[name](xp, equation, *inputs)
    if name not in NATIVE or not all(isinstance(dtype, np.dtype) for dtype in dtypes):
        return lambda _, *inputs: _as_numpy(equation.bind(*inputs, **equation.params))
    function, dtype = NATIVE[name], dtypes[0]

    def apply(_: Any, *inputs: Any) -> Any:
        with np.errstate(all="ignore"):
            return np.asarray(function(np, equation, *inputs), dtype=dtype)[()]

    return apply


def _as_numpy(found: Any) -> Any:
    if isinstance(found, list | tuple):
        return [_as_numpy(part) for part in found]
    return np.asarray(found)[()] if isinstance(getattr(found, "dtype", None), np.dtype) else found


def _in_double_precision(equation: Equation) -> Callable[..., Any]:
    """A primitive without a rule, of numbers that are independent of the leaves, so nothing is lost."""

    def apply(xp: Any, *inputs: Any) -> Any:
        floats = [
            nearest(boxed(value)).astype(aval.dtype) if _kind(aval) == "f" else value
            for value, aval in zip(inputs, equation.inputs, strict=True)
        ]
        found = _as_numpy(equation.bind(*floats, **equation.params))
        several = isinstance(found, list)
        lifted = [
            xp.reals(in_double(part)) if _is_active_kind(aval) else part
            for part, aval in zip(found if several else [found], equation.outputs, strict=True)
        ]
        return lifted if several else lifted[0]

    return apply


def _inside(equation: Any) -> Any:
    """The program of jax primitives behind another package's primitive, or, from jax 0.12 on, behind one whose results
    are whole numbers, such as searchsorted; others of these bring a derivative. Or None."""
    import jax

    primitive, avals = equation.primitive, [var.aval for var in equation.invars]
    made = equation.params.get("_prim")
    impl: Callable[..., Any] = functools.partial(primitive.impl, **equation.params)
    if primitive.name == "call_hi_primitive" and not any(_is_active_kind(var.aval) for var in equation.outvars):
        impl = lambda *inputs: made.expand(*made.in_tree.unflatten(inputs))  # noqa: E731
    elif getattr(primitive.impl, "__module__", "jax").partition(".")[0] in ("jax", "functools", "jaxlib"):
        return None
    shapes = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]
    try:
        closed = jax.make_jaxpr(impl)(*shapes)
    except Exception:  # not only a program of primitives
        return None
    for inner in _equations(closed.jaxpr):
        if inner.primitive is primitive or _is_bitcast(inner, to_floats=False):  # bits have no derivative
            return None
    return closed


def _opened(jaxpr: Any) -> tuple[Any, Sequence[Any]]:
    """A jaxpr with its constants."""
    return (jaxpr.jaxpr, jaxpr.consts) if hasattr(jaxpr, "jaxpr") else (jaxpr, ())


def _equations(jaxpr: Any) -> Iterator[Any]:
    """All equations of a jaxpr and its inner jaxprs."""
    for equation in jaxpr.eqns:
        yield equation
        for inner in jaxprs_in(equation.params):
            yield from _equations(inner)


# Loops and branches ----------------------------------------------------------------------------------------------


def _chosen(branches: Sequence[Any], index: Any) -> Any:
    """The branch with this number, or the nearest one if out of range."""
    return branches[min(max(int(index), 0), len(branches) - 1)]


def _cond(params: Any, fixed: Sequence[bool], manner: Manner) -> Callable[..., Any]:
    def compiled(branch: Any) -> JaxprProgram | Unsupported:
        try:
            return JaxprProgram(branch.jaxpr, branch.consts, fixed[1:], manner)
        except Unsupported as error:  # another branch may run
            return error

    branches = [compiled(branch) for branch in params["branches"]]

    def apply(xp: Any, index: Any, *inputs: Any) -> Any:
        branch = _chosen(branches, index)
        if isinstance(branch, Unsupported):
            raise branch
        return branch.run(xp, inputs)

    return apply


def _iterates(jaxpr: Any) -> bool:
    return any(equation.primitive.name == "while" for equation in _equations(jaxpr))


def _solved(equation: Any, fixed: Sequence[bool], manner: Manner) -> Callable[..., Any]:
    """x of A x = b, where jax iterates: A's columns are its products with the unit vectors."""
    product, count, shapes = equation.params["jaxprs"].matvec, equation.params["const_lengths"].matvec, equation.outvars
    if len(shapes) != 1 or not 0 < (size := shapes[0].aval.size) <= MOST_UNKNOWNS or _kind(shapes[0].aval) != "f":
        raise Unsupported("jax.lax.custom_linear_solve with an iterative solver and these unknowns")
    times = JaxprProgram(product.jaxpr, product.consts, [*fixed[:count], True], manner)
    units = np.eye(size).reshape(size, *shapes[0].aval.shape)

    def apply(xp: Any, *inputs: Any) -> Any:
        columns = [np.reshape(times.run(xp, [*inputs[:count], xp.reals(unit)])[0], size) for unit in units]
        x = xp.linalg.solve(np.stack(columns, -1), np.reshape(inputs[-1], size)).reshape(units.shape[1:])
        (found,) = _in_double_precision(_described(equation))(xp, *inputs)
        (near, exact) = (nearest(boxed(value)) for value in (found, x))
        if np.max(abs(near - exact)) > CONVERGED * np.max(abs(exact)):
            raise Unsupported(OF_A_SOLVER)
        return [x]

    return apply


def _while(params: Any, fixed: Sequence[bool], manner: Manner) -> Callable[..., Any]:
    first, second = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    carried = [all(fixed)] * (len(fixed) - second)
    holds = JaxprProgram(*_opened(params["cond_jaxpr"]), [*fixed[:first], *carried], manner)
    body = JaxprProgram(*_opened(params["body_jaxpr"]), [*fixed[first:second], *carried], manner)
    compared = _equations(_opened(params["cond_jaxpr"])[0])
    stops_at_tolerance = not manner.stops and any(
        _is_active_kind(atom.aval) for equation in compared for atom in equation.invars
    )

    def apply(xp: Any, *inputs: Any) -> Any:
        state, loops, steps = list(inputs[second:]), STOPPED.get(), 0
        while holds.run(xp, [*inputs[:first], *state])[0]:
            xp.check_time()
            state, steps = body.run(xp, [*inputs[first:second], *state]), steps + 1
        if stops_at_tolerance and loops is not None:
            loops.met = True
            for _ in range(steps * loops.continued):
                xp.check_time()
                state = body.run(xp, [*inputs[first:second], *state])
        return state

    return apply


def _scan(params: Any, fixed: Sequence[bool], manner: Manner) -> Callable[..., Any]:
    first, carry = scan_counts(params)
    second, length = first + carry, params["length"]
    avals = params["jaxpr"].out_avals[carry:]
    carried = [all(fixed)] * carry
    body = JaxprProgram(*_opened(params["jaxpr"]), [*fixed[:first], *carried, *fixed[second:]], manner)
    order = range(length - 1, -1, -1) if params["reverse"] else range(length)

    def apply(xp: Any, *inputs: Any) -> Any:
        state, rows = list(inputs[first:second]), inputs[second:]
        made: list[Any] = [[None] * length for _ in avals]
        for k in order:
            xp.check_time()
            found = body.run(xp, [*inputs[:first], *state, *(row[k] for row in rows)])
            state = found[: len(state)]
            for results, value in zip(made, found[len(state) :], strict=True):
                results[k] = value
        return [*state, *map(_stacked, made, avals)]

    return apply


def _stacked(values: Sequence[Any], aval: Any) -> Any:
    """Values of the same shape along a new first axis."""
    if not isinstance(aval.dtype, np.dtype):
        import jax.numpy as jnp

        return jnp.stack(values)
    if values and isinstance(values[0], EnclosedArray):
        return np.stack(values)
    made = np.empty((len(values), *aval.shape), dtype=object if _is_active_kind(aval) else aval.dtype)
    for k, value in enumerate(values):
        made[k] = value
    return made


LOOPS: dict[str, Callable[..., Callable[..., Any]]] = {"cond": _cond, "while": _while, "scan": _scan}
