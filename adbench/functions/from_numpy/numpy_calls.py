"""Functions in plain numpy, scipy, math, autograd or adbench.tape, for the oracle."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np

from adbench.functions.from_numpy import CREATION, FUNCTIONS
from adbench.functions.from_numpy.duck_arrays import (
    FLOAT64,
    Calls,
    EnclosedCalls,
    Number,
    Numbers,
    bare,
    calls_of,
)
from adbench.functions.from_numpy.rebinding import Rebinding
from adbench.functions.low_precision import is_of_user
from adbench.model.errors import Unsupported
from adbench.oracle.enclosures.enclosed_namespace import Enclosures
from adbench.oracle.enclosures.recorded import EnclosedArray, TooManyNumbers, WithinRadii
from adbench.oracle.evidence import within
from adbench.oracle.series.arrays import RealArray
from adbench.oracle.series.ball import Insufficient
from adbench.oracle.series.namespace import TooSlow
from adbench.oracle.series.number import LostPrecision

_CURRENT: ContextVar[Calls] = ContextVar("calls")
"""The current evaluation's `Calls`, for the stand-ins of copied functions."""


def numpy_text(flat: Callable[..., Any], examples: Sequence[Any]) -> Callable[..., Any]:
    """text(xp, *leaves): flat on the numbers of the oracle's namespace xp.

    flat   of floats and float64 arrays, written with numpy, scipy, math, autograd.numpy or adbench.tape. Of functions
           with custom derivatives (autograd's `primitive`, `tape.function_gradients`) only the value is used

    It first runs unchanged. If that needs a float, a copy replaces it (`rebinding`). The text raises Unsupported, with
    the function or the line, for untranslatable operations.
    """
    del examples
    return _Text(flat)


class _Text:
    def __init__(self, flat: Callable[..., Any]) -> None:
        self._flat = flat
        self._copy: Callable[..., Any] | None = None
        if "autograd" in sys.modules:
            rebinding = Rebinding(_called)
            made = rebinding.of(flat)
            self._copy = made if rebinding.stops else None

    def __call__(self, xp: Any, *leaves: Any) -> Any:
        """The value. Raises Unsupported."""
        if isinstance(xp, Enclosures):
            calls: Calls = EnclosedCalls(xp)
        else:
            calls = calls_of(xp.number)
            calls.xp.deadline = xp.deadline
        if self._copy is not None:
            return self._value(self._copy, calls, leaves)
        try:
            return self._value(self._flat, calls, leaves)
        except (Insufficient, TooSlow, TooManyNumbers, WithinRadii):
            raise
        except Exception as error:  # the function may need a copy that calls ours
            rebinding = Rebinding(_called)
            made = rebinding.of(self._flat)
            if not rebinding.copied:
                raise _told(error) from error
            self._copy = made
            # Random roundings belong to the position of an operation in the run.
            (calls.xp if isinstance(xp, Enclosures) else xp.number).begin()
            return self._value(made, calls, leaves)

    def _value(self, function: Callable[..., Any], calls: Calls, leaves: Sequence[Any]) -> Any:
        try:
            with within(_CURRENT, calls):
                found = function(*map(calls.entered, leaves))
        except (LostPrecision, Unsupported) as error:
            raise _told(error) from error
        return found.view(RealArray) if isinstance(found, Numbers) else found


def _called(path: str, function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Handle a copied function's call of a library function."""
    if path in INNER:
        return INNER[path](_CURRENT.get(), *args, **options)
    calls, active = _CURRENT.get(), _is_active((args, tuple(options.values())))
    makes = path in CREATION and _makes_floats(path, args, options)
    if not (active or makes):
        return function(*args, **options)
    if isinstance(function, np.ufunc):
        return calls.ufunc(function, "__call__", args, options)
    if path in FUNCTIONS:
        return calls.function(path, function, args, options)
    if path.startswith("scipy."):
        raise Unsupported(f"{path} has no translation to the oracle's numbers")
    try:
        return function(*args, **options)
    except (TypeError, AttributeError):
        namesake = _namesake(path)
        if namesake is None:
            raise
        return calls.function(*namesake, args, options)


def _with_gradient(calls: Calls, f: Callable[..., Any], x: Any) -> tuple[Any, Any]:
    """f(x) and its gradient there, both exact. Raises Unsupported unless x is a number or an array."""
    if not isinstance(x, float | int | np.ndarray):
        raise Unsupported(f"a derivative inside the function, by {type(x).__name__}, has no translation")
    number = calls.xp.reals(bare(x))
    found = calls.xp.derivative(lambda t: bare(f(calls.dressed(t))), number)
    return f(calls.dressed(number)), calls.dressed(found)


def _of_autograd(part: slice | int) -> Callable[..., Any]:
    """autograd's operator that returns this part of (value, gradient)."""

    def operator(calls: Calls, f: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
        def derived(*args: Any) -> Any:
            def in_one(x: Any) -> Any:
                return f(*args[:argnum], x, *args[argnum + 1 :])

            return _with_gradient(calls, in_one, args[argnum])[part]

        return derived

    return operator


INNER: Mapping[str, Callable[..., Any]] = {
    "adbench.tape.gradient": _with_gradient,
    "autograd.grad": _of_autograd(1),
    "autograd.value_and_grad": _of_autograd(slice(2)),
}
"""Derivatives inside a function."""


def _namesake(path: str) -> tuple[str, Any] | None:
    """numpy's function for an adbench.tape function of the same name."""
    name = path.rpartition(".")[2]
    if path.startswith("adbench.tape.") and name not in ("gradient", "put", "shape"):  # not numpy's
        for module in ("numpy", "numpy.linalg", "numpy.fft"):
            if f"{module}.{name}" in FUNCTIONS or hasattr(getattr(sys.modules[module], name, None), "_implementation"):
                return f"{module}.{name}", getattr(sys.modules[module], name, None)
    return None


def _makes_floats(path: str, args: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Whether a function creates an array of floats."""
    dtype = options.get("dtype", args[1] if path != "numpy.eye" and path != "numpy.full" and len(args) > 1 else None)
    if dtype is not None:
        return bool(np.dtype(dtype) == FLOAT64)
    return path != "numpy.array" or np.asarray(args[0]).dtype.kind == "f"


def _is_active(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_is_active, value))
    return isinstance(value, Number | Numbers) or (
        isinstance(value, np.ndarray | EnclosedArray) and value.dtype == object
    )


def _told(error: Exception) -> Exception:
    """The error with the user's line that raised it."""
    if not isinstance(error, LostPrecision | Unsupported) or getattr(error, "told", False):
        return error
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if is_of_user(frame.filename)]
    places = [f" ({Path(frame.filename).name}, line {frame.lineno}: {frame.line})" for frame in frames[-1:]]
    told = Unsupported(f"{error}{''.join(places)}")
    told.told = True  # type: ignore[attr-defined]
    return told
