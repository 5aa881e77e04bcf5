"""Numbers and arrays from a message's input, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
MOST_NUMBERS = 50_000_000  # that an input may ask to be made: 400 MB


class BadInput(ValueError):
    """The input of a message is unusable; the text says which part of it, what it must be and what it is."""


def part(data: Any, name: str) -> Any:
    """A field of an object. Raises BadInput, as all below."""
    if not isinstance(data, Mapping):
        raise BadInput(f"the input must be an object with {name}; it is {_kind(data)}")
    if name not in data:
        raise BadInput(f"the input lacks {name}")
    return data[name]


def integer(data: Any, name: str, least: int = 0, most: int | None = None) -> int:
    """A whole number from `least` to `most`."""
    value = part(data, name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadInput(f"{name} must be a whole number; it is {_kind(value)}")
    if value < least or (most is not None and value > most):
        limits = f"at least {least}" + (f" and at most {most}" if most is not None else "")
        raise BadInput(f"{name} must be {limits}; it is {_short(value)}")
    return value


def number(value: Any, name: str) -> float:
    """A float64."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput(f"{name} must be a number; it is {_kind(value)}")
    try:
        return float(value)
    except OverflowError:
        raise BadInput(f"{name} is beyond what a float64 can hold") from None


def array(data: Any, name: str, *shape: int | None) -> Array:
    """An array of float64 with this shape; None stands for any length."""
    value = part(data, name)
    found = _array(value, name)
    if found.ndim + 1 == len(shape) and found.size == 0 and shape[0] in (0, None):  # [] for no rows of anything
        found = found.reshape((0, *(n or 0 for n in shape[1:])))
    if len(shape) != found.ndim or any(n is not None and n != m for n, m in zip(shape, found.shape, strict=True)):
        wanted = " × ".join("any" if n is None else str(n) for n in shape)
        raise BadInput(f"{name} must be {wanted} numbers; there are {' × '.join(map(str, found.shape)) or 'none'}")
    return found


def vector(data: Any, name: str) -> Array:
    """A vector of at least one number."""
    found = array(data, name, None)
    if not found.size:
        raise BadInput(f"{name} must have at least one number")
    return found


def indices(found: Array, name: str, below: int) -> NDArray[np.int64]:
    """An array of whole numbers from 0 to below `below`."""
    whole = found.astype(np.int64)
    if np.any(whole != found) or np.any(whole < 0) or np.any(whole >= below):
        raise BadInput(f"{name} must hold whole numbers from 0 to {below - 1}")
    return whole


def runs(data: Any) -> tuple[int, float]:
    """(min_runs, min_seconds); one run where the input asks for neither."""
    if not isinstance(data, Mapping):
        return 1, 0.0
    least = integer(data, "min_runs", 0, 10**9) if "min_runs" in data else 1
    seconds = number(data["min_seconds"], "min_seconds") if "min_seconds" in data else 0.0
    if not 0 <= seconds <= 1e6:
        raise BadInput(f"min_seconds must be at least 0 and at most a million; it is {seconds}")
    return max(1, least), seconds


def affordable(what: str, count: int) -> None:
    """Raises BadInput for more numbers than a machine would hold."""
    if count > MOST_NUMBERS:
        raise BadInput(f"{what} would be {count} numbers; at most {MOST_NUMBERS} are made")


def _array(value: Any, name: str) -> Array:
    if not isinstance(value, list):
        raise BadInput(f"{name} must be an array; it is {_kind(value)}")
    try:
        found = np.array(value)
    except (ValueError, OverflowError) as error:
        raise BadInput(f"{name} has rows of different lengths") from error
    if found.size and found.dtype.kind not in "iuf":
        raise BadInput(f"{name} must hold numbers; it holds {_kind(found.ravel()[:1].tolist()[0])}")
    return found.astype(np.float64)


def _kind(value: Any) -> str:
    names = {bool: "true or false", str: "a text", list: "an array", dict: "an object", type(None): "null"}
    return next((text for kind, text in names.items() if isinstance(value, kind)), f"{_short(value)}")


def _short(value: Any) -> str:
    try:
        text = str(value)
    except ValueError:  # Python writes no whole number of more than some thousand digits
        return "a number of thousands of digits"
    return text if len(text) <= 30 else f"{text[:27]}…"
