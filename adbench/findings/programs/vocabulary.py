"""Expressions from which random programs are made: one line each, in array-API names.

What an expression is defined for is not written down: a program is built at its point, and an expression that raises,
overflows or returns NaN on the operands there is not used (`generation`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Expression:
    """An operation of random programs.

    text      with {0}, {1} for operands and {axis}, {n}, {c} for parameters that are drawn
    fits      whether operands of these shapes may be tried; arity: their number
    inner     whether it may be used in a function whose derivative the program takes, which numpy evaluates at complex
              numbers
    """

    name: str
    text: str
    fits: Callable[..., bool]
    arity: int = 1
    inner: bool = False


def _anything(*shapes: Shape) -> bool:
    return True


def _array(*shapes: Shape) -> bool:
    return len(shapes[0]) >= 1


def _vector(*shapes: Shape) -> bool:
    return all(len(shape) == 1 for shape in shapes)


def _matrix(*shapes: Shape) -> bool:
    return len(shapes[0]) == 2


def _square(*shapes: Shape) -> bool:
    return len(shapes[0]) == 2 and shapes[0][0] == shapes[0][1]


def _same(first: Shape, second: Shape) -> bool:
    return first == second and len(first) >= 1


def _broadcast(first: Shape, second: Shape) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(first), reversed(second), strict=False))


def _product(first: Shape, second: Shape) -> bool:
    return len(first) == 2 and 1 <= len(second) <= 2 and first[-1] == second[0]


def _system(first: Shape, second: Shape) -> bool:
    return _square(first) and 1 <= len(second) <= 2 and first[0] == second[0]


ANALYTIC = ("sin", "cos", "exp", "tanh", "sinh", "cosh", "square", "expm1")
UNARY = (
    *ANALYTIC,
    *("tan", "asin", "acos", "atan", "asinh", "acosh", "atanh", "log", "log1p", "log2", "log10", "sqrt", "abs"),
    *("negative", "sign"),
)

EXPRESSIONS: tuple[Expression, ...] = (
    *(Expression(name, f"xp.{name}({{0}})", _anything, inner=name in ANALYTIC) for name in UNARY),
    Expression("add", "{0} + {1}", _broadcast, 2, inner=True),
    Expression("subtract", "{0} - {1}", _broadcast, 2, inner=True),
    Expression("multiply", "{0} * {1}", _broadcast, 2, inner=True),
    Expression("divide", "{0} / {1}", _broadcast, 2, inner=True),
    Expression("pow", "{0} ** {1}", _broadcast, 2),
    Expression("add_constant", "{0} + {c}", _anything, inner=True),
    Expression("multiply_constant", "{0} * {c}", _anything, inner=True),
    Expression("divide_constant", "{c} / {0}", _anything, inner=True),
    Expression("integer_power", "{0} ** {n}", _anything, inner=True),
    Expression("negative_power", "{0} ** -{n}", _anything, inner=True),
    Expression("half_power", "{0} ** 1.5", _anything),
    Expression("exponential_base", "2.0 ** {0}", _anything),
    *(
        Expression(name, f"xp.{name}({{0}}, {{1}})", _broadcast, 2)
        for name in ("maximum", "minimum", "hypot", "atan2", "logaddexp")
    ),
    Expression("clip", "xp.clip({0}, -1.0, 1.0)", _anything),
    Expression("where_positive", "xp.where({0} > 0, {0}, {1})", _same, 2),
    Expression("where_less", "xp.where({0} < {1}, {0}, {1} * {0})", _same, 2),
    Expression("masked_sqrt", "xp.where({0} > 0, xp.sqrt(xp.where({0} > 0, {0}, 1.0)), 0.0)", _array),
    *(
        Expression(name, f"xp.{name}({{0}})", _array)
        for name in ("sum", "mean", "max", "min", "prod", "std", "var", "sort")
    ),
    *(
        Expression(f"{name}_axis", f"xp.{name}({{0}}, axis={{axis}})", _array)
        for name in ("sum", "mean", "max", "prod", "std")
    ),
    Expression("sum_keepdims", "xp.sum({0}, axis={axis}, keepdims=True)", _array),
    Expression("log_sum_exp", "xp.log(xp.sum(xp.exp({0}), axis={axis}))", _array),
    Expression(
        "softmax",
        "xp.exp({0} - xp.max({0}, axis={axis}, keepdims=True)) / "
        "xp.sum(xp.exp({0} - xp.max({0}, axis={axis}, keepdims=True)), axis={axis}, keepdims=True)",
        _array,
    ),
    Expression("cumulative_sum", "xp.cumulative_sum({0}, axis={axis})", _array),
    Expression("cumulative_prod", "xp.cumulative_prod({0}, axis={axis})", _array),
    Expression("first", "{0}[0]", _array),
    Expression("last", "{0}[..., -1]", _array),
    Expression("tail", "{0}[1:]", _array),
    Expression("every_other", "{0}[..., ::2]", _array),
    Expression("new_axis", "{0}[:, None]", _vector),
    Expression("row", "{0}[None, :]", _vector),
    Expression("gather", "{0}[numpy.array([0, 0, -1])]", _array),
    Expression("reshape", "xp.reshape({0}, (-1,))", _matrix),
    Expression("expand_dims", "xp.expand_dims({0}, axis=0)", _vector),
    Expression("transpose", "xp.permute_dims({0}, (1, 0))", _matrix),
    Expression("flip", "xp.flip({0}, axis={axis})", _array),
    Expression("roll", "xp.roll({0}, 1, axis={axis})", _array),
    Expression("stack", "xp.stack([{0}, {1}])", lambda a, b: a == b and len(a) <= 1, 2),
    Expression("concat", "xp.concat([{0}, {1}], axis=0)", lambda a, b: len(a) == len(b) >= 1 and a[1:] == b[1:], 2),
    Expression("tril", "xp.tril({0})", _matrix),
    Expression("triu", "xp.triu({0})", _matrix),
    Expression("outer", "{0}[:, None] * {1}[None, :]", _vector, 2),
    Expression("matmul", "{0} @ {1}", _product, 2),
    Expression("dot", "{0} @ {1}", lambda a, b: a == b and len(a) == 1, 2),
    Expression("gram", "{0} @ xp.permute_dims({0}, (1, 0))", _matrix),
    Expression("vector_norm", "xp.linalg.vector_norm({0})", _array),
    Expression("trace", "xp.linalg.trace({0})", _square),
    Expression("det", "xp.linalg.det({0})", _square),
    Expression("log_abs_det", "xp.linalg.slogdet({0})[1]", _square),
    Expression("inv", "xp.linalg.inv({0})", _square),
    Expression("solve", "xp.linalg.solve({0}, {1})", _system, 2),
    Expression(
        "cholesky",
        "xp.linalg.cholesky({0} @ xp.permute_dims({0}, (1, 0)) + xp.eye({0}.shape[0]))",
        _square,
    ),
    Expression("eigvalsh", "xp.linalg.eigvalsh({0} + xp.permute_dims({0}, (1, 0)))", _square),
    Expression("svdvals", "xp.linalg.svdvals({0})", _square),
)

LOOP = "xp.loop(lambda i, y: {body}(y), {0}, {n})"
DERIVATIVE = "xp.derivative(lambda y: xp.sum({body}(y)), {0})"

BY_NAME = {expression.name: expression for expression in EXPRESSIONS}
TOTAL = "xp.sum({0})"


def parameters(text: str, shapes: Sequence[Shape]) -> dict[str, tuple[str, ...]]:
    """The choices for each parameter in an expression's text."""
    choices = {
        "axis": tuple(str(axis) for axis in (*range(len(shapes[0])), -1)),
        "n": ("2", "3"),
        "c": ("2.0", "0.5", "-1.5", "3.0", "0.1"),
    }
    return {name: found for name, found in choices.items() if f"{{{name}}}" in text}
