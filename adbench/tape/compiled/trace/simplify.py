"""Simplify operations: x · 1, x / 1, double negation, sums with -y or scattered values, systems of Cholesky factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adbench.tape.compiled.trace.matrix_forms import MATRIX_FORMS, thin_product
from adbench.tape.core.rule import Rule, Value, function_gradients
from adbench.tape.identities.recognised import KNOWN, product
from adbench.tape.linalg import solving, triangular_factors
from adbench.tape.rules import elementwise as e
from adbench.tape.rules import products, reductions, shapes
from adbench.tape.rules.indexing import put
from adbench.tape.rules.predicates import of_both_sides
from adbench.tape.rules.shapes import reshape
from adbench.tape.singular import UNDEFINED
from adbench.tape.values import shape_of

Producer = Callable[[Any], "tuple[Rule, tuple[Value, ...], dict[str, Any]] | None"]


def _added(x: Value, v: Value, index: Any) -> Value:
    y = np.array(x, float)
    np.add.at(y, index, v)
    return y


ADD_AT: Rule = function_gradients(
    _added,
    reverse=(lambda _val, adj, _x, _v, index: adj, lambda _val, adj, _x, _v, index: adj[index]),
    forward=(
        lambda _val, tan, _x, _v, index: tan,
        lambda _val, tan, _x, _v, index: put(tan, index=index, shape=shape_of(_x)),
    ),
    name="add_at",
    fresh=True,
)
"""add_at(x, v, index=): x with v added at the index, repeatedly for repeated positions."""


def one_number(x: Value) -> float | None:
    """The value of a constant stored as one number for all elements, else None."""
    if type(x) is float:
        return x
    if type(x) is np.ndarray and x.dtype.kind == "f" and x.size and not any(x.strides):
        return float(x[(0,) * x.ndim])
    return None


def simplified(rule: Rule, inputs: list[Value], params: dict[str, Any], producer: Producer) -> Value:
    """A value equal to rule(*inputs) that needs no new record, or None. It may simplify inputs.

    Uses only identities that hold for every float: x · 1, x / 1, x - 0, -(-x), x + (-y), besides `MATRIX_FORMS`. (x + 0
    is not x for x = -0.0.)
    """
    if rule.elementwise and len(inputs) == 2:
        for i in (0, 1):
            number = one_number(inputs[i]) if type(inputs[i]) is np.ndarray else None
            if number is not None and np.broadcast_shapes(shape_of(inputs[i]), shape_of(inputs[1 - i])) == shape_of(
                inputs[1 - i]
            ):
                inputs[i] = number
    simple = _TABLE.get(rule)
    return None if simple is None else simple(inputs, params, producer)


def _multiply(inputs: list[Value], _params: dict[str, Any], _made: Producer) -> Value:
    for i in (0, 1):
        if type(inputs[i]) is float:
            if inputs[i] == 1.0:
                return inputs[1 - i]
            if inputs[i] == -1.0:
                return e.negative(inputs[1 - i])
    return product(*inputs)


def _divide(inputs: list[Value], _params: dict[str, Any], producer: Producer) -> Value:
    """x / 1, and c / (1 + exp u) where its square overflows, see `identities`. That adds a guard: not in loops."""
    if type(inputs[1]) is float:
        return inputs[0] if inputs[1] == 1.0 else None
    total = producer(inputs[1]) if type(inputs[0]) is float and shape_of(inputs[1]) == () else None
    if total is None or total[0] is not e.add or inputs[1].tape.outer is not None:
        return None
    terms = [x for x in total[1] if type(x) is not float or x != 1.0]
    exponential = producer(terms[0]) if len(terms) == 1 else None
    if exponential is None or exponential[0] is not e.exp or not inputs[1] > 1e150:
        return None
    return inputs[0] * e.expit(-exponential[1][0])


def _subtract(inputs: list[Value], _params: dict[str, Any], producer: Producer) -> Value:
    """x - 0, and x - (-y) as a sum."""
    if type(inputs[1]) is float:
        return inputs[0] if repr(inputs[1]) == "0.0" else None
    before = producer(inputs[1])
    return inputs[0] + before[1][0] if before is not None and before[0] is e.negative else None


def _negative(inputs: list[Value], _params: dict[str, Any], producer: Producer) -> Value:
    before = producer(inputs[0])
    return before[1][0] if before is not None and before[0] is e.negative else None


def _add(inputs: list[Value], _params: dict[str, Any], producer: Producer) -> Value:
    """A sum with -y is a difference, and c x + c x is (2 c) x. A sum with a result of `put` adds only at the positions
    that are not zero."""
    first, second = map(producer, inputs)
    if first is not None and second is not None and first[0] is second[0] is e.multiply:
        (a, x), (b, y) = (sorted(p[1], key=lambda v: type(v) is not float) for p in (first, second))
        if type(a) is float and type(b) is float and a == b and x is y:
            return (2.0 * a) * x
    for i in (1, 0):
        before = producer(inputs[i])
        if before is None:
            continue
        if before[0] is e.negative:
            return e.subtract(inputs[1 - i], before[1][0])
        if before[0] is put and shape_of(inputs[1 - i]) == before[2]["shape"]:
            other, (v,), index = inputs[1 - i], before[1], before[2]["index"]
            return ADD_AT(other, v, index=index)
    return None


def _matmul(inputs: list[Value], _params: dict[str, Any], producer: Producer) -> Value:
    """A product with a matrix of equal entries is a sum over rows or over columns."""
    a, b = inputs
    if len(shape_of(a)) != 2 or len(shape_of(b)) != 2:
        return thin_product(a, b)
    shape = (shape_of(a)[0], shape_of(b)[1])
    number = _all_entries(a, producer)
    if number is not None:
        return shapes.broadcast_to(reshape(number * reductions.sum(b, 0), (1, shape[1])), shape)
    number = _all_entries(b, producer)
    if number is not None:
        return shapes.broadcast_to(reshape(number * reductions.sum(a, 1), (shape[0], 1)), shape)
    return thin_product(a, b)


def _solve(inputs: list[Value], _params: dict[str, Any], producer: Producer) -> Value:
    """A system of a Cholesky factor or its transpose is triangular: neither it nor its derivatives need an LU."""
    factor, transposed, before = inputs[0], False, producer(inputs[0])
    if before is not None and before[0] is shapes._transpose and len(shape_of(factor)) == 2:
        factor, transposed = before[1][0], before[2]["axes"] == (1, 0)
        before = producer(factor)
    if before is None or before[0] is not triangular_factors._cholesky:
        return None
    return solving.triangular(factor, inputs[1], lower=True, transposed=transposed)


def _sum(inputs: list[Value], params: dict[str, Any], producer: Producer) -> Value:
    """The sum of a matrix product without the product: Σ_ij (A B)_ij = Σ_k (Σ_i A_ik) (Σ_j B_kj)."""
    before = producer(inputs[0]) if params["axes"] is None else None
    if before is None or before[0] is not products.matmul:
        return None
    a, b = before[1]
    if len(shape_of(a)) != 2 or len(shape_of(b)) not in (1, 2):
        return None
    of_rows = reductions.sum(b, 1) if len(shape_of(b)) == 2 else b
    return reductions.sum(reductions.sum(a, 0) * of_rows)


def _all_entries(x: Value, producer: Producer) -> Value:
    """The common value of all entries of a matrix, or None if they are not known to be equal."""
    number = one_number(x)
    if number is not None:
        return number
    before = producer(x)
    if before is not None and before[0] is shapes._broadcast and shape_of(before[1][0]) == ():
        return before[1][0]
    return None


def _known(rule: Rule) -> Callable[..., Value]:
    """The smoother form of a composition, see `identities`."""
    return lambda inputs, _params, _made: KNOWN[rule](*inputs)


def _where(inputs: list[Value], _params: dict[str, Any], _made: Producer) -> Value:
    """`where` under a condition that holds at single points, see `predicates.of_both_sides`."""
    condition = of_both_sides(*inputs)
    return None if condition is inputs[0] else e.where(condition, *inputs[1:])


def _undefined(inputs: list[Value], params: dict[str, Any], _made: Producer) -> Value:
    """The zeros themselves, if no sweep will read their derivative."""
    x = inputs[0]
    return None if x.tape.is_differentiated else UNDEFINED.value(np.broadcast_to(0.0, x.shape), **params)[()]


def _same_shape(inputs: list[Value], params: dict[str, Any], _made: Producer) -> Value:
    return inputs[0] if shape_of(inputs[0]) == params["shape"] else None


def _whole(inputs: list[Value], params: dict[str, Any], _made: Producer) -> Value:
    return inputs[0] if params["index"] == () and type(params["index"]) is tuple else None


_TABLE: dict[Rule, Callable[..., Value]] = {
    **{rule: _known(rule) for rule in KNOWN},
    UNDEFINED: _undefined,
    e.where: _where,
    e.multiply: _multiply,
    e.divide: _divide,
    e.subtract: _subtract,
    e.negative: _negative,
    e.positive: lambda inputs, _params, _made: inputs[0],
    e.add: _add,
    shapes._broadcast: _same_shape,
    shapes._reshape: _same_shape,
    products.matmul: _matmul,
    reductions._sum: _sum,
    **MATRIX_FORMS,
    solving._solve: _solve,
    shapes.copy: lambda inputs, _params, _made: inputs[0],
}
