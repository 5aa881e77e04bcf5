"""XAD: numbers from C++ in numpy arrays of objects, recorded on a tape at every call; also forward mode."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xad.adj_1st as adj_1st
import xad.fwd_1st as fwd_1st
import xad.math as math
from xad import value as value_of

from adbench import Operator, Unsupported
from adbench.vocabulary import of_numpy

from .support.flat import on_numbers
from .support.objects import Objects

REQUIRES = ("xad",)
LICENCE = "AGPL-3.0-or-later"


def logaddexp(x: Any, y: Any) -> Any:
    """log(e^x + e^y), which XAD lacks, as numpy computes it."""
    if x == y:
        return x + float(np.log(2.0)) if np.isinf(value_of(x)) else 0.5 * (x + y) + float(np.log(2.0))
    top, low = (x, y) if x > y else (y, x)
    return top + math.log1p(math.exp(low - top))


SAME = (
    "acos acosh asin asinh atan atan2 atanh exp exp2 expm1 cos cosh floor hypot log log10 log1p log2 sin sinh sqrt tan "
    "tanh"
)
OF_NUMBERS: Mapping[str, Callable[..., Any]] = {
    **{name: getattr(math, its) for name, its in of_numpy(SAME.split()).items()},
    "absolute": math.abs,
    "logaddexp": logaddexp,
    "maximum": lambda x, y: x if x != x else math.max(x, y),  # XAD's loses a NaN
    "minimum": lambda x, y: x if x != x else math.min(x, y),
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1.0 / x,
    "power": lambda x, y: math.pow(x, y),
}

NUMBERS = Objects(
    "xad", lambda x: isinstance(x, (adj_1st.Real, fwd_1st.Real)), lambda x, like: type(like)(x), OF_NUMBERS
)
NESTED = "xad's Python module has first-order numbers only"


def derivative(*_: Any) -> Any:
    raise Unsupported(NESTED)


xp = NUMBERS.namespace(value_of, derivative=derivative)


def values(g: Callable[[Any], Any], x: list[Any], real: Any) -> list[Any]:
    """The values of g as numbers of XAD, also if g does not depend on x."""
    entries = np.asarray(NUMBERS.bare(g(x)), dtype=object).ravel()
    return [entry if isinstance(entry, real) else real(float(entry)) for entry in entries]


def forget(error: BaseException | None) -> None:
    """Delete the local variables of all calls that this exception or one of its causes ended."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def pull_back(g: Callable[[Any], Any], x: list[float], w: Any = (1.0,)) -> Any:
    """(values, wᵀ J)."""
    with adj_1st.Tape() as tape:
        active = [adj_1st.Real(number) for number in x]
        tape.registerInputs(active)
        tape.newRecording()
        try:
            found = values(g, active, adj_1st.Real)
        except BaseException as error:
            # A number that outlives its tape takes a place on the next one when it dies, which changes derivatives.
            active.clear()
            forget(error)
            raise
        tape.registerOutputs(found)
        for value, weight in zip(found, w, strict=True):
            value.setDerivative(value.getDerivative() + weight)  # two outputs may be the same number
        tape.computeAdjoints()
        return [value.getValue() for value in found], [number.getDerivative() for number in active]


def value_and_gradient(g: Callable[[Any], Any], x: list[float]) -> Any:
    (value,), gradient = pull_back(g, x)
    return value, gradient


def jvp(g: Callable[[Any], Any], x: list[float], v: list[float]) -> Any:
    moving = [fwd_1st.Real(number) for number in x]
    for number, slope in zip(moving, v, strict=True):
        number.setDerivative(slope)
    return [value.getDerivative() for value in values(g, moving, fwd_1st.Real)]


OPERATIONS: dict[Operator, Callable[..., Any]] = {  # for functions of a list of numbers
    "gradient": lambda g, x: pull_back(g, x)[1],
    "value_and_gradient": value_and_gradient,
    "jvp": jvp,
    "vjp": lambda g, x, w: pull_back(g, x, w)[1],
}


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    if operator == "value":
        return f
    if operator not in OPERATIONS:
        raise Unsupported(f"xad has no {operator}: its Python module has first-order numbers only")
    return on_numbers(OPERATIONS[operator], operator, f, wrt, NUMBERS.dressed)
