"""One complex evaluation per input on numpy: Im f(x + ih) / h, exact to rounding where f is analytic."""

from collections.abc import Callable
from typing import Any

import numpy as np

from adbench import Namespace, Operator, Unsupported
from adbench.suite import tree
from adbench.suite.catalog import first_line

LICENCE = "BSD-3-Clause"  # ours

KNOWN: dict[str, str] = {}

H = 1e-100  # no difference is taken, so that nothing cancels, and h² is gone from the value


def within(function: Callable[..., Any], outside: Callable[[Any], Any]) -> Callable[..., Any]:
    """A function of complex numbers that is not a number where it is not one of real numbers."""
    return lambda x: np.where(outside(np.real(x)), np.nan, function(x))


def atan2(y: Any, x: Any) -> Any:
    a, b = np.real(y), np.real(x)
    return np.arctan2(a, b) + 1j * (b * np.imag(y) - a * np.imag(x)) / (a * a + b * b)


def slogdet(a: Any) -> tuple[Any, Any]:
    turn, log_abs_det = np.linalg.slogdet(a)
    sign = np.sign(turn.real)
    return sign, log_abs_det + 1j * np.angle(turn * sign)


def variance(x: Any, **options: Any) -> Any:
    """numpy's takes the modulus."""
    gap = x - np.mean(x, **{**options, "keepdims": True})
    return np.mean(gap * gap, **options)


def refused(name: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise Unsupported(f"numpy's {name} of complex matrices conjugates, which is not analytic")

    return refuse


# What takes a modulus or conjugates is made analytic, as in Martins, Sturdza and Alonso (2003), "The complex-step
# derivative approximation", ACM TOMS 29, 245-262. numpy orders complex numbers by their real parts first.
xp = Namespace(
    np,
    abs=lambda x: np.where(np.real(x) < 0, -1, 1) * x,
    acos=within(np.arccos, lambda x: np.abs(x) > 1),
    asin=within(np.arcsin, lambda x: np.abs(x) > 1),
    atan2=atan2,
    floor=lambda x: np.floor(np.real(x)),
    log=within(np.log, lambda x: x < 0),
    log1p=within(np.log1p, lambda x: x < -1),
    remainder=lambda x, y: x - y * np.floor(np.real(x) / np.real(y)),
    sign=lambda x: np.sign(np.real(x)),
    sqrt=within(np.sqrt, lambda x: x < 0),
    std=lambda x, **options: np.sqrt(variance(x, **options)),
    var=variance,
    linalg={
        "slogdet": slogdet,
        "vector_norm": lambda x: np.sqrt(np.sum(x * x)),
        **{name: refused(name) for name in ("cholesky", "eigh", "eigvalsh", "qr", "svd", "svdvals")},
    },
)


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    def along(direction: Any, *args: Any) -> Any:
        """J v: one step, into all active inputs."""
        moved = list(args)
        for i, v in zip(wrt, direction, strict=True):
            steps = [a + 1j * H * b for a, b in zip(tree.leaves(args[i]), tree.leaves(v), strict=True)]
            moved[i] = tree.filled(args[i], steps)
        try:
            with np.errstate(all="ignore"):
                return np.imag(f(*moved)) / H
        except TypeError as error:
            raise Unsupported(f"numpy has it for real numbers only: {first_line(error)}") from error

    def jacobian(*args: Any) -> Any:
        x = tuple(args[i] for i in wrt)
        columns = iter([along(unit, *args) for unit in tree.units(x)])

        def block(leaf: Any) -> Any:
            found = np.array([next(columns) for _ in range(np.size(leaf))]).reshape(np.shape(leaf) + shape)
            return np.moveaxis(found, range(np.ndim(leaf)), range(-np.ndim(leaf), 0)) if np.ndim(leaf) else found

        shape = np.shape(f(*args))
        return tree.map_leaves(block, x)

    if operator == "value":
        return f
    if operator in ("gradient", "jacobian"):
        return jacobian
    if operator == "value_and_gradient":
        return lambda *args: (f(*args), jacobian(*args))
    if operator == "jvp":
        return lambda *args: along(args[-1], *args[:-1])
    raise Unsupported(f"a complex step has no {operator}: it goes forwards, and once")
