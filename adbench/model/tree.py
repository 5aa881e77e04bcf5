"""Nested inputs: dicts, lists and tuples of floats and arrays, by `optree`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import optree

NAMESPACE = "adbench"


def leaves(tree: Any) -> list[Any]:
    """The leaves of a nested structure, in `optree`'s order (dict keys sorted)."""
    return optree.tree_leaves(tree, namespace=NAMESPACE)


def dense(leaf: Any) -> Any:
    """The leaf; a scipy.sparse matrix or array as a numpy array."""
    return leaf.toarray() if hasattr(leaf, "tocsc") else leaf


def structure(tree: Any) -> Any:
    """The `optree` structure of a nested value."""
    return optree.tree_structure(tree, namespace=NAMESPACE)


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """The same structure with `function` applied to every leaf."""
    return optree.tree_map(function, tree, namespace=NAMESPACE)


def copied(tree: Any) -> Any:
    """The same structure with fresh arrays."""
    return map_leaves(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, tree)


def are_equal(a: Any, b: Any) -> bool:
    """Whether the leaves hold the same values; NaN equals NaN."""
    pairs = zip(map(dense, leaves(a)), map(dense, leaves(b)), strict=True)
    return all(np.array_equal(p, q, equal_nan=np.asarray(p).dtype.kind in "fc") for p, q in pairs)


def is_active(leaf: Any) -> bool:
    """Whether a leaf can be active: a Python float or a float64 array, not an int, which is static."""
    return isinstance(leaf, float) or (isinstance(leaf, np.ndarray) and leaf.dtype == np.float64)


def is_static(leaf: Any) -> bool:
    """Whether a leaf is a Python int, bool or string: part of the program, not of the data."""
    return isinstance(leaf, bool | int | str) and not isinstance(leaf, np.generic)


def like(x: Any, make: Callable[[Any], Any]) -> Any:
    """The structure of x with new leaves; a leaf without axes becomes a float, as inputs are."""

    def leaf(value: Any) -> Any:
        array = make(np.asarray(value, dtype=np.float64))
        return array if np.ndim(array) else float(array)

    return map_leaves(leaf, x)


def map_floats(function: Callable[[Any], Any], x: Any) -> Any:
    """The structure of x with `function` applied to every leaf that can be active, as an array; floats stay floats."""

    def leaf(value: Any) -> Any:
        if not is_active(value):
            return value
        array = function(np.asarray(value, dtype=np.float64))
        return array if isinstance(value, np.ndarray) else float(array)

    return map_leaves(leaf, x)


def units(x: Any) -> Iterator[Any]:
    """The unit vectors: trees like x, zero but for one entry, in the order of leaves and entries."""
    parts = [np.asarray(leaf, dtype=np.float64) for leaf in leaves(x)]
    for k, leaf in enumerate(parts):
        for place in np.ndindex(leaf.shape):
            unit = [np.zeros_like(other) for other in parts]
            unit[k][place] = 1.0
            yield rebuilt(x, unit)


def rebuilt(x: Any, parts: Sequence[Any]) -> Any:
    """The structure of x with these leaves, arrays and floats."""
    following = iter(parts)
    return like(x, lambda _: next(following))


def filled(x: Any, parts: Sequence[Any]) -> Any:
    """The structure of x with these leaves of any type."""
    following = iter(parts)
    return map_leaves(lambda _: next(following), x)
