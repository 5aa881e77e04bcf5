"""Tools of the trap files: a decorator that makes a case, and two functions that the array API lacks.

A trap is a small function at one point where some library has a wrong gradient. The docstring's first line gives f,
the point and the truth; the rest says which libraries are wrong and why.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from adbench import Case, Unsupported

CIRCLE = np.exp(2j * np.pi * np.arange(32) / 32)


def traps(theme: str) -> tuple[dict[str, Case], Callable[..., Callable[..., Any]]]:
    """The dictionary CASES and the decorator `trap` that fills it.

    at        the inputs by name
    truth     the gradient, a number or array (as lists) per active input; None at a kink, where it is a set
    wrt       the active inputs; by default all that are not static
    prepared  other inputs to prepare the backend with, if the trap is to call it elsewhere
    declared  whether finite differences cannot find the truth
    faults    outcome -> reason of wrong results that several libraries share; a backend's KNOWN refers to the outcome
    """
    cases: dict[str, Case] = {}

    def trap(
        at: Mapping[str, Any],
        truth: Sequence[Any] | None,
        *,
        wrt: tuple[str, ...] = (),
        prepared: Mapping[str, Any] | None = None,
        declared: bool = False,
        faults: Mapping[str, str] = MappingProxyType({}),
        name: str = "",
        summary: str = "",
    ) -> Callable[..., Any]:
        def register(f: Callable[..., Any]) -> Callable[..., Any]:
            cases[name or f.__name__] = Case(
                f=f,
                inputs=lambda _n, _rng: _values(at),
                wrt=wrt or tuple(key for key, value in at.items() if not isinstance(value, int | str)),
                sizes=(1,),
                gradient=None if truth is None else lambda **_: tuple(map(_value, truth)),
                declared=declared,
                faults=faults,
                prepared=None if prepared is None else lambda _n, _rng: _values(prepared),
                tags=("trap", theme),
                summary=summary or (f.__doc__ or "").partition("\n")[0],
            )
            return f

        return register

    return cases, trap


def _values(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value(value) for name, value in inputs.items()}


def _value(value: Any) -> Any:
    return np.array(value, dtype=np.float64) if isinstance(value, list | np.ndarray) else value


def is_plain(x: Any) -> bool:
    """Whether x is a number or array of numpy or of the oracle, which record no derivatives."""
    return isinstance(x, float | complex | np.ndarray | np.generic) or hasattr(x, "ball")


def by_hand(xp: Any, x: Any) -> bool:
    """Whether to use hand-written inner derivatives: the library has none, or it is the oracle (for speed)."""
    return is_plain(x) and (not hasattr(xp, "derivative") or np.asarray(x).dtype == object)


def stop_gradient(xp: Any, x: Any) -> Any:
    """x as a constant for the derivative, by `xp.stop_gradient` or a torch tensor's `detach`."""
    if hasattr(xp, "stop_gradient"):
        return xp.stop_gradient(x)
    if hasattr(x, "detach"):
        return x.detach()
    if is_plain(x):
        return x
    raise Unsupported("the backend's namespace has no stop_gradient")


def derivative(xp: Any, g: Callable[[Any], Any], x: Any) -> Any:
    """g'(x) for a scalar x by the library: `xp.derivative(g, x)`.

    On plain numbers, Cauchy's integral around x: g'(x) = mean of g(x + r w) / (r w) over the roots of unity w, exact up
    to rounding for g analytic inside the circle. Calls may be nested.
    """
    if hasattr(xp, "derivative"):
        return xp.derivative(g, x)
    if not is_plain(x):
        raise Unsupported("the backend's namespace has no derivative")
    mean = sum(g(x + 0.5 * w) / (0.5 * w) for w in CIRCLE) / len(CIRCLE)
    return mean if isinstance(x, complex) else mean.real


def assigned(x: Any, index: Any, values: Any) -> Any:
    """x with x[index] = values: in place if the library can, otherwise a new array."""
    if hasattr(x, "at"):
        return x.at[index].set(values)
    try:
        x[index] = values
    except (TypeError, ValueError) as error:
        raise Unsupported(f"{type(x).__name__} does not support assignment to entries") from error
    return x
