"""The form in which a rule is recorded for compilation, and the shape of its result.

Most rules are recorded unchanged, except two kinds:

* A rule with a `scatter` adds in place to a buffer. Symbols have no buffers, so the rule is recorded without it.
* A rule whose gradient functions need plain numbers (eigenvalues, singular values, custom rules that are not
  elementwise): each gradient function becomes one node, which calls it in Python when the compiled function runs.

Shapes are computed without numbers, which do not exist while recording.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from adbench.tape.compiled.trace import simplify
from adbench.tape.compiled.trace.symbol import ALL, ANY, PUT, TAKE
from adbench.tape.core.recording import LEAF
from adbench.tape.core.rule import AllInputs, Rule, RuleError, Value
from adbench.tape.densities.density import Density
from adbench.tape.linalg import determinant, eigenvalues, solving, symmetric_eigenvalues, triangular_factors
from adbench.tape.linalg.singular import singular_values, singular_vectors
from adbench.tape.rules import elementwise as e
from adbench.tape.rules import indexing, products, reductions, shapes
from adbench.tape.rules.compound import _log_softmax_rule
from adbench.tape.values import settle, shape_of, with_infinities

VIEWS = frozenset((shapes._broadcast, shapes._reshape, shapes._transpose, shapes._flip, shapes._zeros, shapes.copy))
"""Rules that give every element of the result a new place, in numpy by a view. Zeros need no memory."""

MOVES = frozenset(
    (
        *(shapes._tril, shapes._triu, shapes._roll, shapes._repeat, shapes._concatenate, shapes._gather_scalars),
        *(indexing.put, indexing.set_at, indexing.getitem, simplify.ADD_AT),
    )
)
"""Other rules that move elements. `getitem` is a view for some indices."""

TRACED_GRADIENTS: set[Rule] = {
    *(reductions._sum, reductions._max, reductions._min, reductions._prod, reductions._cumsum, reductions._cumprod),
    *(reductions._logsumexp, _log_softmax_rule, TAKE, PUT, shapes._sum_to, products.matmul, products._einsum),
    *VIEWS,
    *MOVES,
    *(solving._inv, solving._pinv, solving._solve, solving.triangular, solving._log_abs_det, solving._sign_of_det),
    *(determinant._det, triangular_factors._cholesky, triangular_factors._blocked_adjoint, LEAF),
    *(symmetric_eigenvalues._eigh, eigenvalues._eigvalsh, triangular_factors._qr, singular_values._svdvals),
    *(singular_vectors._svd, singular_vectors.weighted, singular_vectors.rates),
}
"""Rules whose gradient functions are recorded operation by operation, in addition to elementwise rules and
densities."""


class RecordedRule(Rule):
    """A rule's form on a trace; `origin` is the rule that was called."""

    __slots__ = ("origin",)
    origin: Rule


def _form(rule: Rule, reverse: Any) -> RecordedRule:
    form = RecordedRule(rule.name, rule.value, reverse, rule.forward, elementwise=rule.elementwise, fresh=rule.fresh)
    form.origin = rule
    return form


BY_A_NUMBER = _form(
    e.divide,
    (
        lambda _v, adj, _x, y: adj * (1.0 / y),
        lambda val, adj, _x, y: reductions.sum(adj * val) * (-1.0 / y),
    ),
)
"""An array divided by a number: the sweep multiplies by the reciprocal, as the eager engine does."""

QUOTIENT = _form(
    e.divide,
    (
        lambda _v, adj, _x, y: adj * (1.0 / y),
        lambda val, adj, _x, y: -(adj * (val * (1.0 / y))),
    ),
)
"""Any other quotient: one reciprocal serves both partials."""


@cache
def recorded_form(rule: Rule) -> Rule:
    """The form of the rule for a record."""
    if rule is e.divide:
        return QUOTIENT
    if not has_traced_gradients(rule):
        return _form(rule, _called(rule))
    return rule if rule.scatter is None else _form(rule, rule.reverse)


def has_traced_gradients(rule: Rule) -> bool:
    """Whether the gradient functions of a rule are recorded operation by operation."""
    density = isinstance(getattr(rule.value, "__self__", None), Density)
    return rule.elementwise or density or rule in TRACED_GRADIENTS or rule.reverse is None


def _call_rule(name: str, value: Callable[..., Value]) -> Rule:
    """A rule that calls Python and has no derivative."""

    def refuse(*_args: Value, **_params: Any) -> Value:
        raise RuleError(f"{name} is called in Python and has no further derivative; use the eager engine")

    return Rule(name, value, AllInputs(refuse), AllInputs(refuse))


def _called(rule: Rule) -> Any:
    """The reverse gradients of a rule, each as one call."""
    if isinstance(rule.reverse, AllInputs):
        return AllInputs(_all_called(rule, rule.reverse.fn))
    return tuple(None if g is None else _one_called(rule, i, g) for i, g in enumerate(rule.reverse))


def fitted(part: Value, shape: tuple[int, ...]) -> Value:
    """A contribution in the argument's shape; the number 0.0 means none."""
    part = settle(part)
    return np.zeros(shape) + part if shape and type(part) is float and part == 0.0 else part


def _one_called(rule: Rule, i: int, gradient: Callable[..., Value]) -> Callable[..., Value]:
    def value(val: Value, adj: Value, *inputs: Value, result_shape: Any, **params: Any) -> Value:
        try:
            part = gradient(val, adj, *inputs, **params)
        except ArithmeticError:
            part = with_infinities(gradient)(val, adj, *inputs, **params)
        return fitted(part, result_shape)

    call = _call_rule(f"{rule.name}: derivative in argument {i}", value)

    def gradient_function(val: Value, adj: Value, *inputs: Value, **params: Any) -> Value:
        return call(val, adj, *inputs, result_shape=shape_of(inputs[i]), **params)

    return gradient_function


def _all_called(rule: Rule, gradients: Callable[..., Any]) -> Callable[..., Any]:
    def value(
        val: Value, adj: Value, *inputs: Value, wanted: Sequence[bool], result_shape: Any, **params: Any
    ) -> Value:
        parts = gradients(wanted, val, adj, *inputs, **params)
        flat = [np.ravel(fitted(p, shape_of(x))) for p, x, w in zip(parts, inputs, wanted, strict=True) if w]
        return np.concatenate(flat)

    call = _call_rule(f"{rule.name}: derivative", value)

    def gradient_function(wanted: Sequence[bool], val: Value, adj: Value, *inputs: Value, **params: Any) -> Any:
        sizes = [int(np.prod(shape_of(x), dtype=int)) if w else 0 for x, w in zip(inputs, wanted, strict=True)]
        flat = call(val, adj, *inputs, wanted=tuple(wanted), result_shape=(sum(sizes),), **params)
        parts: list[Value] = []
        start = 0
        for x, w, size in zip(inputs, wanted, sizes, strict=True):
            parts.append(shapes.reshape(flat[start : start + size], shape_of(x)) if w else None)
            start += size
        return parts

    return gradient_function


Shape = tuple[int, ...]


def _matmul(shapes: Sequence[Shape], _params: dict[str, Any]) -> Shape:
    a, b = shapes
    if not a or not b or a[-1] != b[-2 if len(b) > 1 else 0]:
        raise ValueError(f"matmul: shapes {a} and {b} do not fit")
    rows, columns = (a[-2:-1] if len(a) > 1 else ()), (b[-1:] if len(b) > 1 else ())
    return (*np.broadcast_shapes(a[:-2], b[:-2]), *rows, *columns)


def _solve(shapes: Sequence[Shape], _params: dict[str, Any]) -> Shape:
    a, b = shapes
    is_vector = len(b) == 1
    columns = (*b, 1) if is_vector else b
    if columns[-2] != a[-1]:
        raise ValueError(f"solve: shapes {a} and {b} do not fit")
    full = (*np.broadcast_shapes(a[:-2], columns[:-2]), *columns[-2:])
    return full[:-1] if is_vector else full


SHAPES: dict[Rule, Callable[[Sequence[Shape], dict[str, Any]], Shape]] = {
    products.matmul: _matmul,
    solving._solve: _solve,
    solving.triangular: _solve,
    **dict.fromkeys(
        (solving._inv, triangular_factors._cholesky, triangular_factors._blocked_adjoint),
        lambda shapes, _params: shapes[0],
    ),
    **dict.fromkeys(
        (solving._log_abs_det, solving._sign_of_det, determinant._det), lambda shapes, _params: shapes[0][:-2]
    ),
    **dict.fromkeys((ANY, ALL), lambda _shapes, _params: ()),
    shapes._broadcast: lambda _shapes, params: params["shape"],
    shapes._sum_to: lambda _shapes, params: params["shape"],
    TAKE: lambda shapes, _params: shapes[0][1:],
    PUT: lambda shapes, params: (params["length"], *shapes[0]),
}
"""Shapes of results from shapes of inputs, for rules whose evaluation would be expensive or could fail."""


def result_shape(rule: Rule, inputs: Sequence[Value], params: dict[str, Any]) -> Shape:
    """The shape of rule(*inputs, **params). Raises ValueError where the inputs' shapes do not fit."""
    shapes_of_inputs = [() if x is None else shape_of(x) for x in inputs]
    if rule.elementwise:
        first = shapes_of_inputs[0] if shapes_of_inputs else ()
        return first if all(s == first for s in shapes_of_inputs) else np.broadcast_shapes(*shapes_of_inputs)
    if rule in SHAPES:
        return SHAPES[rule](shapes_of_inputs, params)
    of_params = params.get("result_shape")  # for rules made by `recorded_forms` and `loop_rule`
    if of_params is not None:
        return tuple(of_params)
    with np.errstate(all="ignore"):
        value = rule.value(*(np.broadcast_to(1.0, s) if s else 1.0 for s in shapes_of_inputs), **params)
    return tuple(np.shape(value))
