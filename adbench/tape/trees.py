"""Nested parameters: dicts, lists, tuples and dataclasses of numbers and arrays, handled by `optree`.

Every functional takes such a nest instead of an array and returns gradients in the same structure. Dataclasses need no
registration: the engine enters them in its own namespace of optree's registry when it first meets them. Fields marked
`field(metadata={"pytree_node": False})`, as in optree, are settings and not parameters.

    Tree(nest)         arithmetic on a nest: params + 0.1 * grad, np.exp(params)
    shape(nest)        the shapes, in the same structure

Source: R. M. Neal, pqR slides (2019), "How arithmetic on lists would work", "Generalizing dimension to shape".
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np
import optree

from adbench.tape.core.rule import Active, Value
from adbench.tape.values import asarray, constant, leaf_value, shape_of, value_of

NAMESPACE = "adbench.tape"

_register_node: Any = optree.register_pytree_node  # its type annotation requires a Collection, but any class works


def tree_flatten(nest: Any) -> tuple[list[Any], Any]:
    """The leaves of a nest from left to right (dict entries sorted by key), and its structure, as in optree."""
    leaves, structure = optree.tree_flatten(nest, namespace=NAMESPACE)
    unknown = {type(leaf) for leaf in leaves if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type)}
    if not unknown:
        return leaves, structure
    for cls in unknown:
        _register(cls)
    return tree_flatten(nest)


def tree_leaves(nest: Any) -> list[Any]:
    """The leaves of a nest, from left to right."""
    return tree_flatten(nest)[0]


def tree_unflatten(structure: Any, leaves: Sequence[Any]) -> Any:
    """A nest of this structure with these leaves."""
    return optree.tree_unflatten(structure, leaves)


# Arguments and results of functionals: numbers, arrays, or nests of them

_SINGLE = (float, int, np.ndarray, np.generic, complex, Active)
first = operator.itemgetter(0)
"""Rebuilds a single number or array from its parts."""


def flatten(x: Any, what: str) -> tuple[list[Value], Callable[[Sequence[Any]], Any]]:
    """The numbers and arrays in x in normal form, and a function that rebuilds the nest from others."""
    if type(x) is np.ndarray or isinstance(x, _SINGLE):
        return [leaf_value(x, what)], first
    leaves, structure = tree_flatten(x)
    return [leaf_value(leaf, what) for leaf in leaves], lambda leaves: tree_unflatten(structure, leaves)


def outputs(y: Any) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """The numbers and arrays that a function returned, and their structure. A list of scalars is a vector."""
    if isinstance(y, _SINGLE):
        return [y], first
    if isinstance(y, list):
        return [asarray(y)], first
    leaves, structure = tree_flatten(y)
    return list(leaves), lambda new: tree_unflatten(structure, new)


def matching(v: Any, like: Sequence[Any], what: str) -> list[Value]:
    """The leaves of v, checked against the shapes of these values."""
    leaves = [v] if isinstance(v, _SINGLE) or (isinstance(v, list) and len(like) == 1) else tree_leaves(v)
    if len(leaves) != len(like):
        raise ValueError(f"{what}: expected {len(like)} arrays, got {len(leaves)}")
    parts = [constant(asarray(leaf), what) for leaf in leaves]
    for part, value in zip(parts, like, strict=True):
        if shape_of(part) != shape_of(value):
            raise ValueError(f"{what}: expected shape {shape_of(value)}, got {shape_of(part)}")
    return parts


def is_scalar(y: Any) -> bool:
    """Whether a function's result is a number; an array of one element is not."""
    return isinstance(y, (float, int, Active, np.ndarray, np.generic)) and shape_of(y) == ()


def name_of(f: Callable[..., Any]) -> str:
    """A function's name, for errors."""
    return getattr(f, "__name__", type(f).__name__)


def described(y: Any) -> str:
    """A function's result in words, for errors."""
    if isinstance(y, (np.ndarray, Active)):
        return f"an array of shape {shape_of(y)}"
    return f"{type(y).__name__} {y!r:.60}"


# Dataclasses, arithmetic and shapes


def _register(cls: type) -> None:
    """Register a dataclass as an inner node, unless another thread already has."""
    fields = dataclasses.fields(cls)
    parameters = [f.name for f in fields if f.metadata.get("pytree_node", True)]
    settings = [f.name for f in fields if not f.metadata.get("pytree_node", True)]

    def flatten(instance: Any) -> tuple[list[Any], tuple[Any, ...], list[str]]:
        return [getattr(instance, n) for n in parameters], tuple(getattr(instance, n) for n in settings), parameters

    def unflatten(setting: tuple[Any, ...], children: Sequence[Any]) -> Any:
        # Without the constructor, which may check or convert its arguments: here variables or gradients.
        instance: Any = object.__new__(cls)
        for name, value in zip([*parameters, *settings], [*children, *setting], strict=True):
            object.__setattr__(instance, name, value)
        return instance

    try:
        _register_node(cls, flatten, unflatten, namespace=NAMESPACE)
    except ValueError as error:
        if "already registered" not in str(error):
            raise


def tree_map(function: Callable[..., Any], *nests: Any) -> Any:
    """The nest of function(a, b, …) for leaves at the same position. A number means a nest of that number."""
    structures = [tree_flatten(nest)[1] for nest in nests]
    if len(set(structures)) > 1:
        try:
            common = reduce(lambda a, b: optree.tree_broadcast_common(a, b, namespace=NAMESPACE)[1], nests)
            wide = [optree.tree_broadcast_prefix(nest, common, namespace=NAMESPACE) for nest in nests]
        except ValueError as error:
            described = " and ".join(map(str, dict.fromkeys(structures)))
            raise ValueError(f"nests of different structure: {described}; use the same keys and lengths") from error
        for narrow, spread in zip(nests, wide, strict=True):
            optree.tree_map_(_check_spread, narrow, spread, namespace=NAMESPACE)
        nests = tuple(wide)
    return optree.tree_map(function, *nests, namespace=NAMESPACE)


def _check_spread(leaf: Any, spread: Any) -> None:
    if np.shape(value_of(leaf)) and not optree.tree_structure(spread, namespace=NAMESPACE).is_leaf():
        raise ValueError(
            f"nests of different structure: one has an array of shape {np.shape(value_of(leaf))} where the other has "
            f"a nest; only a number can replace a whole nest"
        )


def shape(nest: Any) -> Any:
    """The shape of a number or array, () or (n, …); for a nest, a nest of shapes."""
    return tree_map(lambda leaf: tuple(np.shape(value_of(leaf))), nest)


def _plain(leaf: Any) -> Any:
    """A scalar of numpy's as a float."""
    return float(leaf) if isinstance(leaf, (np.ndarray, np.floating)) and not np.shape(leaf) else leaf


class Tree(np.lib.mixins.NDArrayOperatorsMixin):
    """A nest with arithmetic: operators and numpy's elementwise functions work leaf by leaf.

    params = Tree({"x": 3.0, "y": np.array([-4.0, 5.0])})
    params + 0.1 * gradient(f, params)[1]          # f gets a Tree, the gradient is one

    `tree.nest` is the plain nest, and tree[key] is one of its entries. The other operand is a Tree or nest of the same
    structure, or a number. A number may also replace an inner nest. With a variable, write the tree first:
    tree * variable.
    """

    __slots__ = ("nest",)

    nest: Any

    def __init__(self, nest: Any) -> None:
        self.nest = nest.nest if isinstance(nest, Tree) else nest

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options:
            return NotImplemented
        nests = (x.nest if isinstance(x, Tree) else x for x in inputs)
        return Tree(tree_map(lambda *leaves: _plain(ufunc(*leaves)), *nests))

    def __getitem__(self, key: Any) -> Any:
        return self.nest[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.nest)

    def __repr__(self) -> str:
        return f"Tree({self.nest!r})"


_register_node(Tree, lambda t: ((t.nest,), None), lambda _, nests: Tree(*nests), namespace=NAMESPACE)
