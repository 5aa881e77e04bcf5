"""Numbers and arrays from a message's input, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
MOST_NUMBERS = 50_000_000  # the most numbers that an input may create: 400 MB


class BadInput(ValueError):
    """A message's input is unusable; the text names the part, the expected and the actual value."""


def part(data: Any, name: str) -> Any:
    """A field of an object. Raises BadInput, like all functions below."""
    if not isinstance(data, Mapping):
        raise BadInput(f"the input must be an object with {name}; got {_kind(data)}")
    if name not in data:
        raise BadInput(f"the input lacks {name}")
    return data[name]


def integer(data: Any, name: str, least: int = 0, most: int | None = None) -> int:
    """An integer from `least` to `most`."""
    value = part(data, name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadInput(f"{name} must be an integer; got {_kind(value)}")
    if value < least or (most is not None and value > most):
        limits = f"at least {least}" + (f" and at most {most}" if most is not None else "")
        raise BadInput(f"{name} must be {limits}; got {_short(value)}")
    return value


def number(value: Any, name: str) -> float:
    """A float64."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput(f"{name} must be a number; got {_kind(value)}")
    try:
        return float(value)
    except OverflowError:
        raise BadInput(f"{name} exceeds the range of float64") from None


def array(data: Any, name: str, *shape: int | None) -> Array:
    """A float64 array of this shape; None means any length."""
    value = part(data, name)
    numbers = _array(value, name)
    if numbers.ndim + 1 == len(shape) and numbers.size == 0 and shape[0] in (0, None):  # [] for zero rows of any length
        numbers = numbers.reshape((0, *(n or 0 for n in shape[1:])))
    if len(shape) != numbers.ndim or any(n is not None and n != m for n, m in zip(shape, numbers.shape, strict=True)):
        wanted = " × ".join("any" if n is None else str(n) for n in shape)
        raise BadInput(f"{name} must be {wanted} numbers; got {' × '.join(map(str, numbers.shape)) or 'none'}")
    return numbers


def vector(data: Any, name: str) -> Array:
    """A vector of at least one number."""
    numbers = array(data, name, None)
    if not numbers.size:
        raise BadInput(f"{name} must have at least one number")
    return numbers


def indices(found: Array, name: str, below: int) -> NDArray[np.int64]:
    """An array of integers from 0 to below `below`."""
    whole = found.astype(np.int64)
    if np.any(whole != found) or np.any(whole < 0) or np.any(whole >= below):
        raise BadInput(f"{name} must hold integers from 0 to {below - 1}")
    return whole


def runs(data: Any) -> tuple[int, float]:
    """(min_runs, min_seconds); by default one run."""
    if not isinstance(data, Mapping):
        return 1, 0.0
    least = integer(data, "min_runs", 0, 10**9) if "min_runs" in data else 1
    seconds = number(data["min_seconds"], "min_seconds") if "min_seconds" in data else 0.0
    if not 0 <= seconds <= 1e6:
        raise BadInput(f"min_seconds must be at least 0 and at most a million; got {seconds}")
    return max(1, least), seconds


def affordable(what: str, count: int) -> None:
    """Raise BadInput for more numbers than MOST_NUMBERS."""
    if count > MOST_NUMBERS:
        raise BadInput(f"{what} would need {count} numbers; the limit is {MOST_NUMBERS}")


def _array(value: Any, name: str) -> Array:
    if not isinstance(value, list):
        raise BadInput(f"{name} must be an array; got {_kind(value)}")
    try:
        numbers = np.array(value)
    except (ValueError, OverflowError) as error:
        raise BadInput(f"{name} has rows of different lengths") from error
    if numbers.size and numbers.dtype.kind not in "iuf":
        raise BadInput(f"{name} must hold numbers; got {_kind(numbers.ravel()[:1].tolist()[0])}")
    return numbers.astype(np.float64)


def _kind(value: Any) -> str:
    names = {bool: "true or false", str: "a string", list: "an array", dict: "an object", type(None): "null"}
    return next((text for kind, text in names.items() if isinstance(value, kind)), f"{_short(value)}")


def _short(value: Any) -> str:
    try:
        text = str(value)
    except ValueError:  # Python does not write integers of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= 30 else f"{text[:27]}…"
