"""Mistakes between calls: state left behind, NaN, second order, wrong kinds of results."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import adbench.tape as tape
from tests.oracle import subjects as at
from tests.oracle.mutant import Mutant
from tests.oracle.planting import (
    Plant,
    after,
    everywhere,
    in_forward,
    in_functional,
    in_method,
    in_reverse,
    in_value,
)


def detached(right: Any, val: Any, adj: Any, *inputs: Any, **params: Any) -> Any:
    """The gradient function computes with plain numbers: correct in first order, and a constant in second."""
    return right(tape.value_of(val), adj, *map(tape.value_of, inputs), **params)


def nan_at_zero(right: Any, val: Any, adj: Any, x: Any, **params: Any) -> Any:
    return np.where(tape.value_of(x) == 0.0, np.nan, right(val, adj, x, **params))


def stale_values() -> Iterator[Mutant]:
    def remembered(which: int) -> Any:
        """The first input, or the previous one."""
        seen: list[Any] = []

        def wrong(right: Any, val: Any, adj: Any, x: Any) -> Any:
            seen.append(tape.value_of(x))
            return right(val, adj, seen[0] if which == 0 else seen[max(0, len(seen) - 2)])

        return wrong

    def last_value() -> Any:
        seen: list[Any] = []

        def wrong(right: Any, val: Any, adj: Any, x: Any) -> Any:
            seen.append(val)
            return right(seen[-2] if len(seen) > 1 else val, adj, x)

        return wrong

    def by_reference(right: Any, value: Any, *more: Any, **params: Any) -> Any:
        return value if isinstance(value, np.ndarray) else right(value, *more, **params)

    kind = "stale value"
    yield Mutant(
        name="the first input ever", kind=kind, case=at.sines, points=2,
        plant=lambda patch, ran: in_reverse("sin", remembered(0))(patch, ran),
    )  # fmt: skip
    yield Mutant(
        name="the first input ever, at one point", kind=kind, case=at.sines, relation="wrong by itself",
        plant=lambda patch, ran: in_reverse("sin", remembered(0))(patch, ran),
    )  # fmt: skip
    yield Mutant(
        name="the input of the call before", kind=kind, case=at.sines, relation="twice",
        plant=lambda patch, ran: in_reverse("sin", remembered(1))(patch, ran),
    )  # fmt: skip
    yield Mutant(
        name="the value of another node", kind=kind, case=at.twice_same_rule,
        plant=lambda patch, ran: in_reverse("exp", last_value())(patch, ran),
    )  # fmt: skip
    yield Mutant(
        name="adjoints of the sweep before", kind=kind, case=at.sines, operator="hessian",
        plant=in_method(lambda: tape.Tape, "zero_adjoints", lambda right, self: None),
    )  # fmt: skip
    yield Mutant(
        name="an array kept by reference", kind=kind,
        case=at.case(at.overwritten_later, x=at.vector, w=at.weights),
        plant=everywhere("snapshot", by_reference, or_else="constant"),
    )  # fmt: skip
    kept: dict[str, Any] = {}

    def same_buffer(right: Any, f: Any, x: Any) -> Any:
        value, (g,) = right(f, x)
        buffer = kept.setdefault("g", np.array(g))
        buffer[...] = g
        return value, (buffer,)

    yield Mutant(
        name="one buffer for all results", kind=kind, case=at.sines, relation="own",
        plant=in_functional("gradient", same_buffer),
    )  # fmt: skip

    def spoils(right: Any, f: Any, x: Any) -> Any:
        found = right(f, x)
        x[0][0] += 1e-3
        return found

    yield Mutant(
        name="writes into its input", kind=kind, case=at.sines, relation="untouched",
        plant=in_functional("gradient", spoils),
    )  # fmt: skip


def not_numbers() -> Iterator[Mutant]:
    kind = "NaN at a zero"
    yield Mutant(name="sin", kind=kind, case=at.zeros_in_sines, plant=in_reverse("sin", nan_at_zero))
    yield Mutant(name="tanh", kind=kind, case=at.zeros_in_squares, plant=in_reverse("tanh", nan_at_zero))
    yield Mutant(name="prod", kind=kind, case=at.zeros_in_products, plant=in_reverse("prod", nan_at_zero))
    yield Mutant(
        name="prod by a quotient", kind=kind, case=at.zeros_in_products,
        plant=in_reverse("prod", lambda right, val, adj, x, axes: adj * val / x, reads_all=True),
    )  # fmt: skip
    yield Mutant(
        name="prod forwards", kind=kind, case=at.zeros_in_products, operator="jvp",
        plant=in_forward("prod", lambda right, val, tan, x, axes: np.sum(tan * (val / x))),
    )  # fmt: skip
    yield Mutant(
        name="the value swallows NaN", kind="NaN swallowed", case=at.sines, operator="value", relation="NaN",
        plant=in_value("sin", after(lambda y: np.nan_to_num(y))),
    )  # fmt: skip


def second_order() -> Iterator[Mutant]:
    kind = "second order"
    for name, where, argument in (
        ("sin", at.sines, 0), ("exp", at.exponentials, 0), ("log", at.logarithms, 0), ("tanh", at.tangents, 0),
        ("multiply", at.one_product, 0), ("power", at.powers, 0), ("matmul", at.applied, 1), ("inv", at.inverse, 0),
        ("logsumexp", at.weighted_log_sum, 0), ("prod", at.multiplied, 0), ("divide", at.quotient, 1),
    ):  # fmt: skip
        yield Mutant(
            name=f"{name} detached", kind=kind, case=where, operator="hvp",
            plant=in_reverse(name, detached, argument),
        )  # fmt: skip
    for name, where in (("sin", at.sines), ("power", at.powers), ("logsumexp", at.weighted_log_sum)):
        yield Mutant(
            name=f"{name} detached", kind=kind, case=where, operator="hessian", plant=in_reverse(name, detached)
        )
    yield Mutant(
        name="the gradient instead", kind=kind, case=at.sines, operator="hvp",
        plant=in_functional("hvp", lambda right, f, x, v: tape.gradient(f, x)),
    )  # fmt: skip
    yield Mutant(
        name="half of the Hessian", kind=kind, case=at.scalar_square, operator="hessian",
        plant=in_functional("hessian", lambda right, f, x: upper_half(*right(f, x))),
    )  # fmt: skip


def upper_half(value: Any, gradient: Any, rows: Any) -> Any:
    return (
        value,
        gradient,
        tuple(tuple(b if j >= i else 0.0 for j, b in enumerate(row)) for i, row in enumerate(rows)),
    )


def forms() -> Iterator[Mutant]:
    def with_gradient(change: Callable[[Any], Any]) -> Plant:
        return in_functional("gradient", lambda right, f, x: (0.0, change(right(f, x)[1])))

    kind = "wrong shape or type"
    changes: dict[str, Callable[[Any], Any]] = {
        "float32": lambda g: (np.float32(g[0]),),
        "complex": lambda g: (g[0] + 0j,),
        "rounded to integers": lambda g: (np.rint(g[0]).astype(int),),
        "objects": lambda g: (g[0].astype(object),),
        "one axis more": lambda g: (g[0][None],),
        "a column": lambda g: (g[0][:, None],),
        "one element short": lambda g: (g[0][:-1],),
        "one array less": lambda g: (),
        "an array twice": lambda g: (g[0], g[0]),
        "no tuple": lambda g: g[0],
        "nothing": lambda g: None,
        "a number": lambda g: (float(g[0][0]),),
    }
    for name, change in changes.items():
        yield Mutant(name=name, kind=kind, case=at.sines, plant=with_gradient(change))
    yield Mutant(name="flattened", kind=kind, case=at.inverse, plant=with_gradient(lambda g: (g[0].ravel(),)))
    yield Mutant(name="arguments exchanged", kind=kind, case=at.two_shapes, plant=with_gradient(lambda g: g[::-1]))
    yield Mutant(
        name="arguments of one shape exchanged", kind="wrong partial", case=at.array_products,
        plant=with_gradient(lambda g: g[::-1]),
    )  # fmt: skip
    yield Mutant(
        name="digits of single precision", kind="all entries", size="1e-8", case=at.exponentials,
        plant=with_gradient(lambda g: (np.float64(np.float32(g[0])),)),
    )  # fmt: skip
    yield Mutant(
        name="the Jacobian of a scalar with an axis of one", kind=kind, case=at.sines, operator="jacobian",
        plant=in_functional("jacobian", lambda right, f, x: (0.0, tuple(j[None] for j in right(f, x)[1]))),
    )  # fmt: skip
    yield Mutant(
        name="the cotangent is ignored", kind="dropped term", case=at.sines, operator="vjp",
        plant=in_functional("vjp", lambda right, f, x, w: right(f, x, 1.0)),
    )  # fmt: skip
    yield Mutant(
        name="the direction is ignored", kind="dropped term", case=at.sines, operator="jvp",
        plant=in_functional("jvp", lambda right, f, x, v: right(f, x, tuple(np.ones_like(part) for part in v))),
    )  # fmt: skip
    yield Mutant(
        name="the value is of the first input", kind="wrong value", case=at.sines, operator="value_and_gradient",
        plant=in_value("sin", after(lambda y: np.copy(y) * 0.0 + y.flat[0] if np.ndim(y) else y)),
    )  # fmt: skip


CALLS: list[Mutant] = [*stale_values(), *not_numbers(), *second_order(), *forms()]
