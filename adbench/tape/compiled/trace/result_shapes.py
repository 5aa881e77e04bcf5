"""Shapes of results, computed without numbers, which do not exist while recording."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adbench.tape.compiled.trace import symbol_rules
from adbench.tape.core.rule import Rule, Value
from adbench.tape.linalg import determinant, solving, triangular_factors
from adbench.tape.rules import products, shapes
from adbench.tape.values import shape_of

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
    **dict.fromkeys((symbol_rules.ANY, symbol_rules.ALL), lambda _shapes, _params: ()),
    shapes._broadcast: lambda _shapes, params: params["shape"],
    shapes._sum_to: lambda _shapes, params: params["shape"],
    symbol_rules.TAKE: lambda shapes, _params: shapes[0][1:],
    symbol_rules.PUT: lambda shapes, params: (params["length"], *shapes[0]),
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
