"""Whether a gradient has the structure, shapes and type of the arguments it belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import optree
from numpy.typing import NDArray

from adbench.oracle.reference import Leaf, Reference


class Misshapen(Exception):
    """The gradient cannot be compared at all; the message says where and what was there."""


def gradient_arrays(gradient: Any, reference: Reference) -> list[NDArray[np.float64]]:
    """The gradient's arrays, one per leaf of the reference; raises Misshapen for anything else.

    ``gradient`` is a tuple with one part per differentiated argument, each nested like its argument.
    """
    parts = leaf_parts(gradient, reference)
    return [_array(part, leaf) for part, leaf in zip(parts, reference.leaves, strict=True)]


def leaf_parts(gradient: Any, reference: Reference) -> list[Any]:
    """What is in the place of each leaf of the reference, whatever it is; raises Misshapen where nothing is."""
    if not isinstance(gradient, (tuple, list)):
        raise Misshapen(f"the gradient must be a tuple, one part per argument; it is {_what(gradient)}")
    if len(gradient) != reference.count:
        raise Misshapen(f"the gradient must have {reference.count} parts, one per argument; it has {len(gradient)}")
    _refuse_extra_parts(gradient, reference)
    return [_at(gradient[leaf.position], leaf) for leaf in reference.leaves]


def scaled(result: Any, factor: float) -> Any:
    """Every array of a nested result times a power of two; what is no array of numbers stays as it is."""

    def leaf(part: Any) -> Any:
        array = np.asarray(part)
        return array * factor if array.dtype.kind in "fiu" else part  # the verdict says what is no number

    return optree.tree_map(leaf, result)


def single_number(value: Any) -> float:
    """``value`` as a float; raises Misshapen unless it is one float64 (or Python float)."""
    array = float_array(value, "the value")
    if array.shape != ():
        raise Misshapen(f"the value must be a scalar; its shape is {array.shape}")
    return float(array)


def _at(tree: Any, leaf: Leaf) -> Any:
    for depth, key in enumerate(leaf.keys):
        try:
            tree = tree[key]
        except (KeyError, IndexError, TypeError):
            way = "".join(f"[{k!r}]" for k in leaf.keys[: depth + 1])
            raise Misshapen(f"{leaf.path} is missing: there is no {way} in {_what(tree)}") from None
    if tree is None:
        raise Misshapen(f"{leaf.path} is missing: None is in its place")
    return tree


def _refuse_extra_parts(gradient: Sequence[Any], reference: Reference) -> None:
    """A dict with a key, or a sequence with a place, that the argument does not have."""
    wanted: dict[tuple[int | str, ...], set[int | str]] = {}
    places = [(leaf.position, *leaf.keys) for leaf in reference.leaves] + list(reference.constants)
    for place in places:
        for depth in range(1, len(place)):
            wanted.setdefault(place[:depth], set()).add(place[depth])
    for parent, keys in wanted.items():
        here: Any = gradient
        try:
            for key in parent:
                here = here[key]
        except (KeyError, IndexError, TypeError):
            continue  # `_at` says what is missing
        found = set(here) if isinstance(here, Mapping) else set(range(len(here) if _has_length(here) else 0))
        if extra := sorted(map(repr, found - keys)):
            raise Misshapen(f"the gradient has parts that its argument has not: {', '.join(extra)}")


def _has_length(thing: Any) -> bool:
    return isinstance(thing, (tuple, list))


def _array(part: Any, leaf: Leaf) -> NDArray[np.float64]:
    array = float_array(part, leaf.path)
    if array.shape != leaf.shape:
        raise Misshapen(f"{leaf.path} must have the shape {leaf.shape} of its argument; it has {array.shape}")
    return array


def float_array(part: Any, name: str) -> NDArray[np.float64]:
    """``part`` as a float64 array; raises Misshapen, with its name, where it is none."""
    try:
        array = np.asarray(part)
    except Exception as error:  # a foreign array type may raise anything here, and the verdict must stand
        raise Misshapen(f"{name} does not become a numpy array: {type(error).__name__}: {error}") from error
    if array.dtype != np.float64:
        raise Misshapen(f"{name} must be float64; it is {array.dtype} ({_what(part)})")
    return array


def _what(thing: Any) -> str:
    if isinstance(thing, Mapping):
        return f"a {type(thing).__name__} with the keys {', '.join(sorted(map(repr, thing)))}"
    if isinstance(thing, (tuple, list)):
        return f"a {type(thing).__name__} of length {len(thing)}"
    shape = getattr(thing, "shape", None)
    return f"a {type(thing).__name__}" + (f" of shape {tuple(shape)}" if shape is not None else "")
