"""Nested inputs: dicts, lists and tuples of floats and arrays, by `optree`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import optree

NAMESPACE = "adbench"


def leaves(tree: Any) -> list[Any]:
    """The leaves of a nested structure, in `optree`'s order (dict keys sorted)."""
    return optree.tree_leaves(tree, namespace=NAMESPACE)


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """The same structure with `function` applied to every leaf."""
    return optree.tree_map(function, tree, namespace=NAMESPACE)


def is_active(leaf: Any) -> bool:
    """Whether a leaf can be differentiated in: a Python float or a float64 array, not an int, which is static."""
    return isinstance(leaf, float) or (isinstance(leaf, np.ndarray) and leaf.dtype == np.float64)


def is_static(leaf: Any) -> bool:
    """Whether a leaf is a Python int, bool or text: part of the program, not of the data."""
    return isinstance(leaf, bool | int | str) and not isinstance(leaf, np.generic)
