"""Wrong rules, with a mistake in a single call: wrong factors, signs, terms, axes, indices."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import adbench.tape as tape
from adbench import Case
from tests.oracle import subjects as at
from tests.oracle.mutant import SIZES, Mutant
from tests.oracle.planting import (
    Plant,
    after,
    everywhere,
    factor,
    in_forward,
    in_functional,
    in_method,
    in_part,
    in_reverse,
    in_scatter,
    in_text,
    in_value,
    scaled,
)


def sized() -> Iterator[Mutant]:
    """Relative errors, in all entries of a rule's result or in one, for rules of every kind."""
    plants: list[tuple[str, Case, Callable[[Any], Plant]]] = [
        ("sin", at.sines, lambda wrong: in_reverse("sin", wrong)),
        ("exp", at.exponentials, lambda wrong: in_reverse("exp", wrong)),
        ("power", at.cubes, lambda wrong: in_reverse("power", wrong)),
        ("sum", at.sums, lambda wrong: in_reverse("sum", wrong)),
        ("matmul", at.product, lambda wrong: in_reverse("matmul", wrong, 1)),
        ("logsumexp", at.log_sum, lambda wrong: in_reverse("logsumexp", wrong)),
        ("inv", at.inverse, lambda wrong: in_reverse("inv", wrong)),
        ("slogdet", at.log_det, lambda wrong: in_reverse("slogdet", wrong)),
        ("einsum", at.contraction, lambda wrong: in_reverse("einsum", wrong)),
        ("prod", at.multiplied, lambda wrong: in_reverse("prod", wrong)),
        ("broadcast product", at.outer, lambda wrong: in_reverse("multiply", wrong)),
    ]
    for label, error in SIZES.items():
        for name, where, plant in plants:
            for one in (False, True):
                kind = "one entry" if one else "all entries"
                yield Mutant(name=name, kind=kind, size=label, case=where, plant=plant(scaled(error, one)))
        yield Mutant(
            name="scatter", kind="one entry", size=label, case=at.gathered, plant=in_scatter("getitem", uneven(error))
        )
        yield Mutant(
            name="scalar product",
            kind="one entry",
            size=label,
            case=at.scalars,
            plant=in_method(lambda: tape.Scalar, "__mul__", replaced(np.multiply, product_gradients(1.0 + error))),
        )
        yield Mutant(
            name="sin before a value", kind="wrong value", size=label, case=at.sines, operator="value_and_gradient",
            plant=in_value("sin", scaled(error)),
        )  # fmt: skip
        yield Mutant(
            name="sum alone", kind="wrong value", size=label, case=at.sums, operator="value",
            plant=in_value("sum", scaled(error)),
        )  # fmt: skip
        for name, where in (("sin", at.sines), ("matmul", at.product), ("sum", at.sums), ("inv", at.inverse)):
            yield Mutant(
                name=name, kind="wrong forward", size=label, case=where, operator="jvp",
                plant=in_forward(name, scaled(error, one=True)),
            )  # fmt: skip
        for operator in ("hvp", "hessian"):
            yield Mutant(
                name="sin", kind="second order", size=label, case=at.sines, operator=operator,
                plant=in_reverse("sin", at_second_order(error)),
            )  # fmt: skip
    for label in ("1", "1e-2", "1e-4", "1e-6"):
        yield Mutant(
            name="sin", kind="wrong forward", size=label, case=at.sines, operator="jvp", relation="wrong by itself",
            plant=in_forward("sin", scaled(SIZES[label])),
        )  # fmt: skip


def uneven(error: float) -> Any:
    def wrong(right: Any, buffer: Any, adj: Any, **params: Any) -> None:
        right(buffer, adj * factor(adj, error, one=True), **params)

    return wrong


def replaced(value: Any, gradients: Any) -> Any:
    """An operator that records another rule, with the same value."""
    rule = tape.function_gradients(value, gradients)
    return lambda right, self, other: rule(self, other)


def product_gradients(first_factor: float) -> Any:
    return (lambda _v, adj, _x, y: adj * y * first_factor, lambda _v, adj, x, _y: adj * x)


def at_second_order(error: float) -> Any:
    """Correct for plain numbers, wrong for numbers that carry derivatives."""

    def wrong(right: Any, val: Any, adj: Any, x: Any) -> Any:
        part = right(val, adj, x)
        return part * (1.0 + error) if isinstance(x, tape.Active) else part

    return wrong


negated = after(lambda part: -part)
transposed = after(lambda part: tape.transpose(part))
no_contribution = after(lambda part: part * 0.0)


def signs() -> Iterator[Mutant]:
    for name, where, argument in (
        ("cos", at.cosines, 0), ("subtract", at.difference, 1), ("divide", at.quotient, 1), ("inv", at.inverse, 0),
        ("matmul", at.applied, 0), ("arctan2", at.angle, 1),
    ):  # fmt: skip
        yield Mutant(name=name, kind="flipped sign", case=where, plant=in_reverse(name, negated, argument))
    yield Mutant(
        name="solve", kind="flipped sign", case=at.solution, plant=in_reverse("solve", in_part(0, lambda part: -part))
    )
    yield Mutant(
        name="scalar difference",
        kind="flipped sign",
        case=at.scalar_square,
        plant=in_method(lambda: tape.Scalar, "__sub__", replaced(np.subtract, (lambda _v, a, _x, _y: a,) * 2)),
    )
    yield Mutant(name="jvp", kind="flipped sign", case=at.sines, operator="jvp", plant=in_forward("sin", negated))


def dropped_terms() -> Iterator[Mutant]:
    for name, where, argument in (
        ("divide", at.quotient, 1), ("power", at.powers, 1), ("matmul", at.product, 1), ("hypot", at.length, 1),
        ("where", at.chosen, 2), ("set_at", at.written, 1),
    ):  # fmt: skip
        yield Mutant(
            name=f"{name}, argument {argument}",
            kind="dropped term",
            case=where,
            plant=in_reverse(name, no_contribution, argument),
        )

    def second_factor_is_constant(right: Any, self: Any, other: Any) -> Any:
        return right(self, tape.value_of(other))

    yield Mutant(
        name="scalar product", kind="dropped term", case=at.scalar_square,
        plant=in_method(lambda: tape.Scalar, "__mul__", second_factor_is_constant),
    )  # fmt: skip
    yield Mutant(
        name="set_at keeps the overwritten element", kind="dropped term", case=at.written,
        plant=in_reverse("set_at", lambda right, val, adj, *inputs, index: adj, 0),
    )  # fmt: skip
    yield Mutant(
        name="einsum, last argument", kind="dropped term", case=at.contraction,
        plant=in_reverse("einsum", in_part(1, lambda part: part * 0.0)),
    )  # fmt: skip
    yield Mutant(
        name="solve, right-hand side", kind="dropped term", case=at.solution,
        plant=in_reverse("solve", in_part(1, lambda part: part * 0.0)),
    )  # fmt: skip
    yield Mutant(
        name="einsum", kind="wrong forward", case=at.contraction, operator="jvp",
        plant=in_forward("einsum", lambda right, val, tans, *inputs, **kw: right(val, (tans[0], None), *inputs, **kw)),
    )  # fmt: skip


def wrong_partials() -> Iterator[Mutant]:
    def swapped(right: Any, val: Any, adj: Any, x: Any, y: Any) -> Any:
        return right(val, adj, y, x)

    for name, where in (("multiply", at.outer), ("divide", at.quotient), ("arctan2", at.angle), ("hypot", at.length)):
        yield Mutant(name=name, kind="wrong partial", case=where, plant=in_reverse(name, swapped, reads_all=True))
    yield Mutant(
        name="where", kind="wrong partial", case=at.chosen,
        plant=in_reverse("where", lambda right, val, adj, c, x, y: right(val, adj, ~np.asarray(c), x, y), 1),
    )  # fmt: skip
    yield Mutant(
        name="maximum", kind="wrong partial", case=at.larger, plant=in_reverse("maximum", swapped, reads_all=True)
    )
    yield Mutant(
        name="scalar product", kind="wrong partial", case=at.scalars,
        plant=in_method(
            lambda: tape.Scalar, "__mul__",
            replaced(np.multiply, (lambda _v, a, x, _y: a * x, lambda _v, a, _x, y: a * y)),
        ),
    )  # fmt: skip
    yield Mutant(
        name="tanh by its value's cosh", kind="wrong partial", case=at.tangents,
        plant=in_reverse("tanh", lambda right, val, adj, x: right(val, adj, val), reads_all=True),
    )  # fmt: skip
    for name, operator in (("__rmul__", np.multiply), ("__mul__", np.multiply)):
        yield Mutant(
            name=f"scalar {name}", kind="constant's edge", case=at.scalar_constants,
            plant=in_method(lambda: tape.Scalar, name, swapped_where_constant(operator)),
        )  # fmt: skip
    yield Mutant(
        name="array product with a constant", kind="constant's edge", case=at.constant_factor,
        plant=in_method(lambda: tape.Array, "__rmul__", swapped_where_constant(np.multiply)),
    )  # fmt: skip
    yield Mutant(
        name="array product with an inactive input", kind="constant's edge", case=at.array_products, relation="subsets",
        plant=in_method(lambda: tape.Array, "__mul__", swapped_where_constant(np.multiply)),
    )  # fmt: skip
    yield Mutant(
        name="multiply, detached from the constant's side", kind="constant's edge", case=at.scalar_constants,
        plant=in_method(lambda: tape.Scalar, "__rsub__", lambda right, self, other: other - tape.value_of(self)),
    )  # fmt: skip


def swapped_where_constant(value: Any) -> Any:
    """An operator whose partial is its value if the other argument is constant; otherwise correct."""
    rule = tape.function_gradients(value, (lambda _v, adj, x, _y: adj * x, lambda _v, adj, _x, y: adj * y))

    def wrong(right: Any, self: Any, other: Any) -> Any:
        return right(self, other) if isinstance(other, tape.Active) else rule(self, other)

    return wrong


def transpositions() -> Iterator[Mutant]:
    for name, where, argument in (
        ("matmul", at.product, 0), ("matmul", at.product, 1), ("inv", at.inverse, 0),
        ("slogdet", at.log_det, 0), ("det", at.determinant, 0), ("cholesky", at.root, 0),
    ):  # fmt: skip
        yield Mutant(
            name=f"{name}, argument {argument}",
            kind="transposed",
            case=where,
            plant=in_reverse(name, transposed, argument),
        )
    yield Mutant(
        name="solve", kind="transposed", case=at.solution, plant=in_reverse("solve", in_part(0, tape.transpose))
    )
    yield Mutant(
        name="transpose goes on instead of back", kind="transposed", case=at.turned,
        plant=in_reverse("transpose", lambda right, val, adj, x, axes: np.reshape(adj, x.shape)),
    )  # fmt: skip
    yield Mutant(
        name="reshape by columns", kind="transposed", case=at.reshaped,
        plant=in_reverse("reshape", lambda right, val, adj, x, shape: np.reshape(adj, x.shape, order="F")),
    )  # fmt: skip
    yield Mutant(name="inv", kind="transposed", case=at.inverse, operator="jvp", plant=in_forward("inv", transposed))
    yield Mutant(
        name="blocks of the Hessian", kind="transposed", case=at.scalar_curve, operator="hessian",
        plant=in_functional("hessian", after(lambda found: (found[0], found[1], tuple(row[::-1] for row in found[2])))),
    )  # fmt: skip


def accumulation() -> Iterator[Mutant]:
    def assigns(cell: int) -> Callable[..., Any]:
        def wrong(right: Any, *args: Any) -> Any:
            args[cell].adj = 0.0
            return right(*args)

        return wrong

    def writes(right: Any, buffer: Any, adj: Any, index: Any) -> None:
        buffer[index] = adj

    def adds_once(right: Any, buffer: Any, adj: Any, index: Any) -> None:
        buffer[index] += adj

    kind = "assigned, not accumulated"
    yield Mutant(name="accumulate", kind=kind, case=at.used_twice, plant=everywhere("accumulate", assigns(2)))
    yield Mutant(name="add_product", kind=kind, case=at.array_products, plant=everywhere("add_product", assigns(1)))
    for side in "ab":
        yield Mutant(
            name=f"the scalar sweep, argument {side}", kind=kind, case=at.scalars,
            plant=in_text("fast.quick_sweep", "sweep", f"{side}.adj += adj", f"{side}.adj = adj"),
        )  # fmt: skip
    yield Mutant(name="scatter writes", kind=kind, case=at.overlapping, plant=in_scatter("getitem", writes))
    yield Mutant(name="scatter of scalars", kind=kind, case=at.first, plant=in_scatter("getitem", writes))
    yield Mutant(
        name="scatter adds a repeated place once",
        kind=kind,
        case=at.repeated,
        plant=in_scatter("getitem", adds_once),
    )


def broadcasting() -> Iterator[Mutant]:
    def first_only(right: Any, adj: Any, shape: Any) -> Any:
        if np.shape(adj) == shape or not isinstance(adj, np.ndarray):
            return right(adj, shape)
        adj = adj[(0,) * (adj.ndim - len(shape))]
        return adj[tuple(slice(0, 1) if n == 1 else slice(None) for n in shape)]

    def mean(right: Any, adj: Any, shape: Any) -> Any:
        return right(adj, shape) * (np.prod(shape, dtype=float) / max(1, np.size(adj)))

    def other_axis(right: Any, adj: Any, shape: Any) -> Any:
        return right(adj.T if np.ndim(adj) == 2 else adj, shape)

    kind = "forgotten broadcast sum"
    yield Mutant(name="the first of them", kind=kind, case=at.outer, plant=everywhere("sum_to", first_only))
    yield Mutant(name="their mean", kind=kind, case=at.outer, plant=everywhere("sum_to", mean))
    yield Mutant(name="of a difference", kind=kind, case=at.difference, plant=everywhere("sum_to", first_only))
    yield Mutant(name="of broadcast_to", kind=kind, case=at.repeats, plant=everywhere("sum_to", first_only))
    yield Mutant(name="sum_to", kind="wrong axis", case=at.outer, plant=everywhere("sum_to", other_axis))
    for name, where in (("sum", at.columns), ("max", at.largest), ("logsumexp", at.soft), ("cumsum", at.running_down)):
        yield Mutant(name=name, kind="wrong axis", case=where, plant=in_reverse(name, transposed))
    yield Mutant(
        name="cumsum forwards", kind="wrong axis", case=at.running_down, operator="jvp",
        plant=in_forward("cumsum", lambda right, val, tan, x, axis: np.cumsum(tan, 1 - axis)),
    )  # fmt: skip


def off_by_one() -> Iterator[Mutant]:
    def next_place(right: Any, buffer: Any, adj: Any, index: Any) -> None:
        shifted = np.zeros_like(buffer)
        right(shifted, adj, index=index)
        buffer += np.roll(shifted, 1)

    def one_further(right: Any, val: Any, adj: Any, x: Any, **params: Any) -> Any:
        return np.roll(right(val, adj, x, **params), 1)

    kind = "off by one"
    for name, where in (
        ("cumsum", at.running),
        ("flip", at.reversed_),
        ("roll", at.rolled),
        ("cumprod", at.running_product),
    ):
        yield Mutant(name=name, kind=kind, case=where, plant=in_reverse(name, one_further))
    yield Mutant(
        name="roll stays", kind=kind, case=at.rolled,
        plant=in_reverse("roll", lambda right, val, adj, x, shift, axis: np.roll(adj, 1 - shift, axis)),
    )  # fmt: skip
    for name, where in (("getitem", at.overlapping), ("sort", at.sorted_), ("scalar elements", at.first)):
        yield Mutant(name=name, kind=kind, case=where, plant=in_scatter("getitem", next_place))
    yield Mutant(
        name="tril", kind=kind, case=at.lower,
        plant=in_reverse("tril", lambda right, val, adj, x, k: np.tril(adj, k - 1)),
    )  # fmt: skip
    yield Mutant(
        name="cumsum leaves its own element out", kind=kind, case=at.running,
        plant=in_reverse("cumsum", lambda right, val, adj, x, axis: right(val, adj, x, axis=axis) - adj),
    )  # fmt: skip
    yield Mutant(
        name="concatenate", kind=kind, case=at.joined,
        plant=in_reverse("concatenate", after(lambda parts: [np.roll(p, 1, 0) for p in parts])),
    )  # fmt: skip


RULES: list[Mutant] = [
    *sized(), *signs(), *dropped_terms(), *wrong_partials(), *transpositions(), *accumulation(), *broadcasting(),
    *off_by_one(),
]  # fmt: skip
