"""jax's primitives on the oracle's numbers: the table behind `adbench.functions.from_jax.jaxprs`.

A rule is called as rule(xp, equation, *inputs). Floating-point values are a `Real`, or an array of them; integers,
booleans and keys remain numpy's or jax's. A rule returns a value, or a list if the primitive has several results.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from adbench.functions.declared_constants import stopped
from adbench.functions.from_jax.jax_arrays import LINEAR_ALGEBRA, REDUCTIONS, Equation, reduction
from adbench.model.errors import Unsupported
from adbench.oracle.enclosures.enclosed_namespace import Enclosures
from adbench.oracle.series import ball
from adbench.oracle.series.algebra.positions import boxed, combined, padded, sources, taken, unboxed
from adbench.oracle.series.arrays import COMPLEX, holds_complex
from adbench.vocabulary import CANONICAL, words

Rule = Callable[..., Any]


# Elementwise -----------------------------------------------------------------------------------------------------


def _named(name: str) -> Rule:
    return lambda xp, _, *inputs: getattr(xp, name)(*inputs)


def _quotient_remainder(a: Any, b: Any) -> Any:
    """a - b trunc(a / b): with the sign of a, as in C."""
    found = abs(a) % abs(b)
    return -found if a < 0 else found


_REMAINDER = np.frompyfunc(_quotient_remainder, 2, 1)


def _convert(xp: Any, equation: Equation, x: Any) -> Any:
    """Floats to integers by truncation; conversions to float are exact."""
    kind = equation.outputs[0].dtype.kind
    if kind == "V":  # bfloat16, for numpy
        kind = "f"
    if kind == "c":
        return xp.reals(x) if holds_complex(x) else COMPLEX(xp.reals(x), xp.number.of(0))
    if kind == "f":
        return xp.real(x) if equation.inputs[0].dtype.kind == "c" else xp.reals(x)
    if kind == "b":
        return boxed(x != xp.number.of(0)).astype(np.bool_)[()]
    return _WHOLE(boxed(x)).astype(equation.outputs[0].dtype) if np.shape(x) else equation.outputs[0].dtype.type(int(x))


_WHOLE = np.frompyfunc(int, 1, 1)


def _bits(xp: Any, equation: Equation, x: Any) -> Any:
    """The bits of the nearest float64, or of its neighbour for a series that leaves it; or a float64 from bits."""
    if equation.outputs[0].dtype.kind == "f":
        return xp.reals(np.asarray(x).view(np.float64)[()])

    def nearest(number: Any) -> float:
        found = ball.nearest(number.ball)
        if isinstance(ball.start(number.ball), ball.Special):
            return found
        moved = ball.sub(number.ball, ball.constant(found))
        if ball.is_series(moved) and ball.sign_of_constant(ball.start(moved)) == 0:
            return math.nextafter(found, math.inf * sign) if (sign := ball.sign(moved)) else found
        return found

    floats = np.asarray(np.frompyfunc(nearest, 1, 1)(x), dtype=np.float64)
    return floats.view(equation.outputs[0].dtype).reshape(equation.outputs[0].shape)[()]


def _select(xp: Any, equation: Equation, which: Any, *cases: Any) -> Any:
    """The case with the number ``which``, entry by entry."""
    if not np.ndim(which):
        return cases[int(which)]
    chosen = cases[0]
    for number, case in enumerate(cases[1:], 1):
        chosen = xp.where(np.asarray(which) == number, case, chosen)
    return chosen


def _round(xp: Any, equation: Equation, x: Any) -> Any:
    if int(equation.params["rounding_method"]) == 1:
        return xp.round(x)
    return xp.sign(x) * xp.floor(xp.abs(x) + 0.5)


OPERATORS = {name: getattr(operator, name) for name in ("add", "sub", "mul", "lt", "le", "gt", "ge", "eq", "ne", "neg")}
"""Primitives that are Python's operators, of floats and of integers."""

OF_FLOATS: Mapping[str, Callable[..., Any]] = {
    **OPERATORS,
    "add_any": operator.add,
    "div": operator.truediv,
    "pow": operator.pow,
    "lt_to": operator.lt,
    "le_to": operator.le,
    "eq_to": operator.eq,
    "rem": _REMAINDER,
    "stop_gradient": functools.partial(stopped, spelling="stop_gradient"),
    "complex": COMPLEX,
}


def _of_inputs(function: Callable[..., Any]) -> Rule:
    return lambda xp, _, *inputs: function(*inputs)


ELEMENTWISE: Mapping[str, Rule] = {
    **{name: _named(function) for name, function in CANONICAL.items()},
    **{name: _of_inputs(function) for name, function in OF_FLOATS.items()},
    "max": _named("maximum"),
    "min": _named("minimum"),
    "bitcast_convert_type": _bits,
    "clamp": lambda xp, _, low, x, high: xp.minimum(xp.maximum(x, low), high),
    "convert_element_type": _convert,
    # jax computes it from a rounded 1 - x², so near ±1 it has the value of a neighbouring x, like 3 x / 3 in float64
    "erf_inv": lambda xp, _, x: xp.erfinv(x * 3 / 3),
    "integer_pow": lambda xp, equation, x: x ** equation.params["y"],
    "polynomial": lambda xp, _, x, *terms: functools.reduce(lambda value, term: value * x + term, reversed(terms)),
    "reduce_precision": lambda xp, _, x: x,  # `jaxprs` has refused fewer bits than float64's
    "round": _round,
    "select_n": _select,
    "square": lambda xp, _, x: x * x,
}


# Structure -------------------------------------------------------------------------------------------------------
#
# These only move entries, so they work for any array, without xp.


def _structural(function: Any) -> Rule:
    """function(params, *arrays) as a rule."""

    def rule(_: Any, equation: Equation, *inputs: Any) -> Any:
        found = function(equation.params, *map(boxed, inputs))
        return list(map(unboxed, found)) if isinstance(found, list) else unboxed(found)

    return rule


def _broadcast_in_dim(params: Any, x: Any, *_: Any) -> Any:
    shape = [1] * len(params["shape"])
    for axis, size in zip(params["broadcast_dimensions"], x.shape, strict=True):
        shape[axis] = size
    return np.broadcast_to(x.reshape(shape), params["shape"])


def _slice(params: Any, x: Any) -> Any:
    strides = params["strides"] or (1,) * x.ndim
    return x[tuple(map(slice, params["start_indices"], params["limit_indices"], strides))]


def _reshape(params: Any, x: Any, *_: Any) -> Any:
    order = params.get("dimensions")
    return (x if order is None else x.transpose(order)).reshape(params["new_sizes"])


def _split(params: Any, x: Any) -> list[Any]:
    return np.split(x, np.cumsum(params["sizes"])[:-1], axis=params["axis"])


def _starts(shape: Sequence[int], sizes: Sequence[int], starts: Sequence[Any]) -> tuple[slice, ...]:
    """The bounds of a dynamic slice, which jax moves inside the array."""
    inside = [min(max(int(s), 0), n - size) for s, n, size in zip(starts, shape, sizes, strict=True)]
    return tuple(slice(first, first + size) for first, size in zip(inside, sizes, strict=True))


def _dynamic_update_slice(_: Any, x: Any, update: Any, *starts: Any) -> Any:
    def put(target: Any, numbers: Any) -> Any:
        target[_starts(x.shape, update.shape, starts)] = numbers
        return target

    return taken(sources(put, x.shape, update.shape), [x, update])


STRUCTURAL: Mapping[str, Rule] = {
    name: _structural(function)
    for name, function in {
        "broadcast_in_dim": _broadcast_in_dim,
        "concatenate": lambda params, *parts: np.concatenate(parts, axis=params["dimension"]),
        "copy": lambda _, x: x,
        "copy_p": lambda _, x: x,
        "dynamic_slice": lambda params, x, *starts: x[_starts(x.shape, params["slice_sizes"], starts)],
        "dynamic_update_slice": _dynamic_update_slice,
        "expand_dims": lambda params, x: np.expand_dims(x, params["dimensions"]),
        "name": lambda _, x: x,
        "reshape": _reshape,
        "rev": lambda params, x: np.flip(x, params["dimensions"]),
        "slice": _slice,
        "split": _split,
        "squeeze": lambda params, x: np.squeeze(x, axis=tuple(params["dimensions"])),
        "stack": lambda params, *parts: np.stack(parts, axis=params["axis"]),
        "tile": lambda params, x: np.tile(x, params["reps"]),
        "transpose": lambda params, x: x.transpose(params["permutation"]),
        "unstack": lambda params, x: list(np.moveaxis(x, params["axis"], 0)),
    }.items()
}


def _pad(_: Any, equation: Equation, x: Any, value: Any) -> Any:
    where = equation.remembered("where", lambda: padded(np.shape(x), equation.params["padding_config"]))
    return taken(where, [x], value)


def _gather(xp: Any, equation: Equation, x: Any, indices: Any) -> Any:
    indices = np.asarray(indices)
    params = {**equation.params, "fill_value": -1}
    where = equation.remembered(
        indices.tobytes(), lambda: sources(lambda at: equation.bind(at, indices, **params), np.shape(x))
    )
    fill = equation.params["fill_value"]
    return taken(where, [x], xp.reals(np.nan if fill is None else fill))


def _scatter_parameters(equation: Equation) -> dict[str, Any]:
    return {name: equation.params[name] for name in ("indices_are_sorted", "unique_indices", "mode")}


def _scatter(_: Any, equation: Equation, x: Any, indices: Any, updates: Any) -> Any:
    """x with the updates instead of its entries."""
    import jax.lax

    indices, params = np.asarray(indices), equation.params
    if params.get("update_jaxpr") is not None:
        raise Unsupported("jax's primitive `scatter` with a function of the entry (`.at[…].apply`)")

    def put(target: Any, numbers: Any) -> Any:
        return jax.lax.scatter(target, indices, numbers, params["dimension_numbers"], **_scatter_parameters(equation))

    where = equation.remembered(indices.tobytes(), lambda: sources(put, np.shape(x), np.shape(updates)))
    return taken(where, [x, updates])


def _landing(equation: Equation, indices: Any) -> Any:
    """The position of each update in the result: the transpose of a scatter-add, run on positions."""
    import jax

    shape, updates = equation.inputs[0].shape, equation.inputs[2]

    def add(numbers: Any) -> Any:
        return jax.lax.scatter_add(
            np.zeros(shape), indices, numbers, equation.params["dimension_numbers"], **_scatter_parameters(equation)
        )

    numbered = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)  # 0: outside
    (found,) = jax.vjp(add, np.zeros(updates.shape))[1](numbered)
    return np.asarray(found).astype(np.int64) - 1


def _scatter_by(total: Callable[[Any, list[Any]], Any]) -> Rule:
    """The updates combined with their target entries; total(xp, [entry, update, …])."""

    def rule(xp: Any, equation: Equation, x: Any, indices: Any, updates: Any) -> Any:
        indices = np.asarray(indices)
        where = equation.remembered(indices.tobytes(), lambda: _landing(equation, indices))
        if isinstance(xp, Enclosures) and equation.name == "scatter-add":
            return xp.put(x, where, updates)
        return combined(x, where, updates, functools.partial(total, xp))

    return rule


INDEXING: Mapping[str, Rule] = {
    "gather": _gather,
    "pad": _pad,
    "scatter": _scatter,
    "scatter-add": _scatter_by(lambda xp, numbers: xp.sum(numbers)),
    "scatter-max": _scatter_by(lambda xp, numbers: functools.reduce(xp.maximum, numbers)),
    "scatter-min": _scatter_by(lambda xp, numbers: functools.reduce(xp.minimum, numbers)),
    "scatter-mul": _scatter_by(lambda xp, numbers: xp.prod(numbers)),
    "scatter-sub": _scatter_by(lambda xp, numbers: numbers[0] - xp.sum(numbers[1:])),
}


# Whole numbers ---------------------------------------------------------------------------------------------------


NATIVE: Mapping[str, Rule] = {
    **{name: _of_inputs(function) for name, function in OPERATORS.items()},
    **{name: ELEMENTWISE[name] for name in ("abs", "clamp", "max", "min", "select_n")},
    **{name: REDUCTIONS[name] for name in ("reduce_max", "reduce_min", "reduce_sum")},
    "and": _named("bitwise_and"),
    "convert_element_type": lambda _xp, _, x: x,
    "not": _named("invert"),
    "or": _named("bitwise_or"),
    "reduce_and": reduction("bitwise_and.reduce"),
    "reduce_or": reduction("bitwise_or.reduce"),
    "rem": _named("fmod"),
    "xor": _named("bitwise_xor"),
}
"""Rules for integers and booleans, where numpy is the namespace; jax computes the others."""

RULES: Mapping[str, Rule] = {**ELEMENTWISE, **STRUCTURAL, **INDEXING, **REDUCTIONS, **LINEAR_ALGEBRA}
"""By the primitive's name, for equations with floating-point or complex numbers."""

EXACT = frozenset(STRUCTURAL) | words(
    "abs bitcast_convert_type convert_element_type eq floor ge gt is_finite le lt max min ne neg pad select_n sign"
)
"""Primitives without rounding: jax may compute them from constants."""

COMPLEX_RULES = frozenset(STRUCTURAL) | words(
    "abs add add_any cholesky complex conj conv_general_dilated convert_element_type copy cos cosh cumsum div "
    "dot_general eig eigh eq exp fft gather imag integer_pow log log1p lu mul ne neg pad pow qr real "
    "reduce_prod reduce_sum scatter scatter-add select_n sign sin sinh sqrt square stop_gradient sub svd tan tanh "
    "triangular_solve"
)
"""Primitives that also work for complex numbers."""
