"""How the trap files write their cases: one decorated function each, and two names that no array standard has.

A trap is a small function, one point, and the gradient there that some library gets wrong. The function's docstring
is its record: the first line says f, the point and the truth; the rest says who gets it wrong, and why.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from adbench import Case, Unsupported

CIRCLE = np.exp(2j * np.pi * np.arange(32) / 32)


def traps(theme: str) -> tuple[dict[str, Case], Callable[..., Callable[..., Any]]]:
    """The dictionary for CASES and the decorator `trap` that fills it.

    at        the inputs by name
    truth     the gradient: one number or array (as lists) for each active input; None at a kink, where it is a set
    wrt       the active inputs; by default all that are not static
    prepared  the inputs to prepare the backend with, where the trap lies in calling at others
    declared  whether differences cannot know the truth
    faults    wrong results that several libraries share, and why: what a backend's KNOWN names by its key
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
    """Whether x is numpy's or the oracle's number or array: nothing that records a derivative."""
    return isinstance(x, float | complex | np.ndarray | np.generic) or hasattr(x, "ball")


def by_hand(xp: Any, x: Any) -> bool:
    """Whether to take inner derivatives by hand: the library has none, or it is the oracle, which is faster so."""
    return is_plain(x) and (not hasattr(xp, "derivative") or np.asarray(x).dtype == object)


def stop_gradient(xp: Any, x: Any) -> Any:
    """x, as a constant to the derivative: `xp.stop_gradient`, or a torch tensor's `detach`."""
    if hasattr(xp, "stop_gradient"):
        return xp.stop_gradient(x)
    if hasattr(x, "detach"):
        return x.detach()
    if is_plain(x):
        return x
    raise Unsupported("the backend's namespace has no stop_gradient")


def derivative(xp: Any, g: Callable[[Any], Any], x: Any) -> Any:
    """g'(x) for a scalar x by the library itself: `xp.derivative(g, x)`.

    On plain numbers the value is Cauchy's integral around x, to rounding: g'(x) = mean of g(x + r w) / (r w) over
    the roots of unity w, for g analytic inside; it may be nested.
    """
    if hasattr(xp, "derivative"):
        return xp.derivative(g, x)
    if not is_plain(x):
        raise Unsupported("the backend's namespace has no derivative")
    mean = sum(g(x + 0.5 * w) / (0.5 * w) for w in CIRCLE) / len(CIRCLE)
    return mean if isinstance(x, complex) else mean.real


def assigned(x: Any, index: Any, values: Any) -> Any:
    """x with x[index] = values: in place where the library can, else as a new array."""
    if hasattr(x, "at"):
        return x.at[index].set(values)
    try:
        x[index] = values
    except (TypeError, ValueError) as error:
        raise Unsupported(f"no assignment to entries of {type(x).__name__}") from error
    return x
