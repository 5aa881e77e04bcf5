"""Expressions from which random programs are made: the table of operations of `adbench conform`, and what it lacks:
operators with constants, other axes, indexing and shapes.

What an expression is defined for is mostly not written down: a program is built at its point, and an expression that
raises, overflows or returns NaN on the operands there is not used (`generation`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial

from adbench.findings.operations import OPERATIONS
from adbench.findings.operations.as_text import own_text, text_of
from adbench.findings.operations.operation import REAL, Domain, Operation

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Expression:
    """An operation of random programs.

    text        with {0}, {1} for operands and {axis}, {n}, {c} for parameters that are drawn
    fits        whether operands of these shapes may be tried
    domain      of each operand; an inactive one must be a constant
    inner       whether it may be used in a function whose derivative the program takes, which numpy evaluates at
                complex numbers
    definition  the functions that the text calls; own: library -> its own text, as in `Step`
    axes        the lengths of each operand's axes, as in a signature: (("n", "3"), ("n",))
    """

    name: str
    text: str
    fits: Callable[..., bool]
    arity: int = 1
    inner: bool = False
    domain: tuple[Domain, ...] = (REAL, REAL)
    definition: str = ""
    own: Mapping[str, str] = field(default_factory=dict, hash=False)
    axes: tuple[tuple[str, ...], ...] = ()


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


def _matches(operation: Operation, *shapes: Shape) -> bool:
    """Whether the signature takes arrays of these shapes, all with the same axes in front if it allows any."""
    lengths: dict[str, int] = {}
    fronts = []
    for dimensions, shape in zip(operation.inputs, shapes, strict=True):
        count = len(shape) - len(dimensions)
        if count < 0:
            return False
        for name, length in zip(dimensions, shape[count:], strict=True):
            if lengths.setdefault(name, int(name) if name.isdigit() else length) != length:
                return False
        fronts.append(shape[:count])
    if operation.is_elementwise:
        return all(_broadcast(a, b) for a in fronts for b in fronts)
    return len(set(fronts)) == 1 and (operation.batch or not fronts[0])


def _of_table(operation: Operation) -> Expression:
    text, definition = text_of(operation)
    own = {library: own_text(expression) for library, expression in operation.own.items()}
    fits = partial(_matches, operation)
    inner = operation.name in ANALYTIC
    return Expression(operation.name, text, fits, operation.arity, inner, operation.domain, definition, own,
                      operation.inputs)  # fmt: skip


ANALYTIC = ["sin", "cos", "exp", "tanh", "sinh", "cosh", "square", "expm1", "add", "subtract", "multiply", "divide"]

STRUCTURAL: tuple[Expression, ...] = (
    Expression("pow", "{0} ** {1}", _broadcast, 2),
    Expression("add_constant", "{0} + {c}", _anything, inner=True),
    Expression("multiply_constant", "{0} * {c}", _anything, inner=True),
    Expression("divide_constant", "{c} / {0}", _anything, inner=True),
    Expression("integer_power", "{0} ** {n}", _anything, inner=True),
    Expression("negative_power", "{0} ** -{n}", _anything, inner=True),
    Expression("half_power", "{0} ** 1.5", _anything),
    Expression("exponential_base", "2.0 ** {0}", _anything),
    Expression("where_positive", "xp.where({0} > 0, {0}, {1})", _same, 2),
    Expression("where_less", "xp.where({0} < {1}, {0}, {1} * {0})", _same, 2),
    Expression("masked_sqrt", "xp.where({0} > 0, xp.sqrt(xp.where({0} > 0, {0}, 1.0)), 0.0)", _array),
    *(Expression(name, f"xp.{name}({{0}})", _array) for name in ("sum", "mean", "max", "min", "prod", "std", "var")),
    *(
        Expression(f"{name}_axis", f"xp.{name}({{0}}, axis={{axis}})", _array)
        for name in ("sum", "mean", "max", "prod", "std")
    ),
    Expression("sum_keepdims", "xp.sum({0}, axis={axis}, keepdims=True)", _array),
    Expression("log_sum_exp", "xp.log(xp.sum(xp.exp({0}), axis={axis}))", _array),
    Expression(
        "softmax_axis",
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
    Expression("gather_rows", "{0}[numpy.array([0, 0, -1])]", _array),
    Expression("reshape", "xp.reshape({0}, (-1,))", _matrix),
    Expression("expand_dims", "xp.expand_dims({0}, axis=0)", _vector),
    Expression("transpose", "xp.permute_dims({0}, (1, 0))", _matrix),
    Expression("flip_axis", "xp.flip({0}, axis={axis})", _array),
    Expression("roll_axis", "xp.roll({0}, 1, axis={axis})", _array),
    Expression("stack", "xp.stack([{0}, {1}])", lambda a, b: a == b and len(a) <= 1, 2),
    Expression("concat", "xp.concat([{0}, {1}], axis=0)", lambda a, b: len(a) == len(b) >= 1 and a[1:] == b[1:], 2),
    Expression("tril", "xp.tril({0})", _matrix),
    Expression("triu", "xp.triu({0})", _matrix),
    Expression("product", "{0} @ {1}", _product, 2),
    Expression("dot", "{0} @ {1}", lambda a, b: a == b and len(a) == 1, 2),
    Expression("gram", "{0} @ xp.permute_dims({0}, (1, 0))", _matrix),
    Expression("vector_norm", "xp.linalg.vector_norm({0})", _array),
    Expression("trace", "xp.linalg.trace({0})", _square),
    Expression(
        "cholesky",
        "xp.linalg.cholesky({0} @ xp.permute_dims({0}, (1, 0)) + xp.eye({0}.shape[0]))",
        _square,
    ),
)
"""What the table of operations lacks, or has for the last axis or some matrices only."""


@cache
def table() -> tuple[Expression, ...]:
    """The table of operations; made when programs are drawn, because reading its source takes a second."""
    names = {one.name for one in STRUCTURAL}
    return tuple(_of_table(one) for one in OPERATIONS.values() if one.name not in names)


@cache
def inner() -> tuple[Expression, ...]:
    """Those for the function of a loop or a derivative."""
    return tuple(one for one in STRUCTURAL + table() if one.inner)


LOOP = "xp.loop(lambda i, y: {body}(y), {0}, {n})"
DERIVATIVE = "xp.derivative(lambda y: xp.sum({body}(y)), {0})"

TOTAL = "xp.sum({0})"


def parameters(text: str, shapes: Sequence[Shape]) -> dict[str, tuple[str, ...]]:
    """The choices for each parameter in an expression's text."""
    choices = {
        "axis": tuple(str(axis) for axis in (*range(len(shapes[0])), -1)),
        "n": ("2", "3"),
        "c": ("2.0", "0.5", "-1.5", "3.0", "0.1"),
    }
    return {name: values for name, values in choices.items() if f"{{{name}}}" in text}
