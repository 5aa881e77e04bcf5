"""Checks that a result has the structure, shapes and type of its arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import optree
from numpy.typing import NDArray

from adbench.oracle.reference import Leaf, Reference, Row


class Misshapen(Exception):
    """The result cannot be compared; the message names the place and what was found."""


def gradient_arrays(gradient: Any, row: Row) -> list[NDArray[np.float64]]:
    """The gradient's arrays, one per leaf of the row; raises Misshapen for anything else.

    ``gradient`` is a tuple with one part per differentiated argument, each nested like its argument.
    """
    parts = _leaf_parts(gradient, row)
    return [
        _shaped(part, leaf.path, leaf.shape, "of its argument") for part, leaf in zip(parts, row.leaves, strict=True)
    ]


def jacobian_blocks(jacobian: Any, known: Reference) -> list[Any]:
    """The Jacobian's parts as matrices of (outputs, entries of the leaf): arrays, or scipy.sparse by columns.

    Raises Misshapen for anything else.
    """
    row = known.all_outputs
    parts = _leaf_parts(jacobian, row)
    return [_matrix(part, known, leaf) for part, leaf in zip(parts, row.leaves, strict=True)]


def hessian_blocks(hessian: Any, known: Reference) -> list[NDArray[np.float64]]:
    """The Hessian's columns of each leaf, as a matrix of (all entries, entries of the leaf).

    ``hessian`` is nested like the arguments, and each leaf is replaced by a structure nested like the arguments.
    Raises Misshapen for anything else.
    """
    row = known.all_outputs
    rows = zip(row.leaves, _leaf_parts(hessian, row, "the Hessian"), strict=True)
    parts = [_leaf_parts(part, row, f"the Hessian's part for {leaf.path}") for leaf, part in rows]

    def block(which: int, other: Leaf) -> NDArray[np.float64]:
        leaf = row.leaves[which]
        part, name = parts[which][row.leaves.index(other)], f"the block of {leaf.path} and {other.path}"
        return _shaped(part, name, leaf.shape + other.shape, "in the Hessian").reshape(leaf.size, other.size)

    return [np.concatenate([block(k, leaf) for k in range(len(row.leaves))]) for leaf in row.leaves]


def _leaf_parts(gradient: Any, row: Row, what: str = "the gradient") -> list[Any]:
    """The part of the gradient for each leaf of the row, of any type; raises Misshapen if it is missing."""
    if not isinstance(gradient, (tuple, list)):
        raise Misshapen(f"{what} must be a tuple, one part per argument; it is {kind_of(gradient)}")
    if len(gradient) != row.count:
        raise Misshapen(f"{what} must have {row.count} parts, one per argument; it has {len(gradient)}")
    _refuse_extra_parts(gradient, row)
    return [_at(gradient[leaf.position], leaf) for leaf in row.leaves]


def scaled(result: Any, factor: float) -> Any:
    """Multiply every array of a nested result by a power of two; other leaves are unchanged."""

    def leaf(part: Any) -> Any:
        array = np.asarray(part)
        return array * factor if array.dtype.kind in "fiu" else part  # the verdict reports non-numbers

    return optree.tree_map(leaf, result)


def symmetrised(result: Any, axes: Any, *, both_sides: bool = False) -> Any:
    """A gradient as it acts on symmetric changes: ½ (G + Gᵀ) for some leaves; ``both_sides``: of a Hessian.

    axes   nested like the result: the number of axes of each such leaf, 0 for the others
    """

    def average(array: Any, last: int) -> Any:
        return (np.asarray(array) + np.swapaxes(array, last, last - 1)) / 2

    def part(count: int, piece: Any) -> Any:
        if both_sides:
            piece = symmetrised(piece, axes)
            return optree.tree_map(lambda block: average(block, count - 1), piece) if count else piece
        return average(piece, -1) if count else piece

    return optree.tree_map(part, axes, result)


def numbers(result: Any, shape: tuple[int, ...], name: str) -> NDArray[np.float64]:
    """``result`` as a float64 array of the value's shape; raises Misshapen, with its name, for anything else."""
    if shape:
        return _shaped(result, name, shape, "of the value")
    array = float_array(result, name)
    if array.shape:
        raise Misshapen(f"{name} must be a scalar; its shape is {array.shape}")
    return array


def _at(tree: Any, leaf: Leaf) -> Any:
    for depth, key in enumerate(leaf.keys):
        try:
            tree = tree[key]
        except (KeyError, IndexError, TypeError):
            way = "".join(f"[{k!r}]" for k in leaf.keys[: depth + 1])
            raise Misshapen(f"{leaf.path} is missing: {kind_of(tree)} has no {way}") from None
    if tree is None:
        raise Misshapen(f"{leaf.path} is missing: it is None")
    return tree


def _refuse_extra_parts(gradient: Sequence[Any], row: Row) -> None:
    """Raise Misshapen for a dict key or a sequence item that the argument lacks."""
    wanted: dict[tuple[int | str, ...], set[int | str]] = {}
    places = [(leaf.position, *leaf.keys) for leaf in row.leaves] + list(row.constants)
    for place in places:
        for depth in range(1, len(place)):
            wanted.setdefault(place[:depth], set()).add(place[depth])
    for parent, keys in wanted.items():
        here: Any = gradient
        try:
            for key in parent:
                here = here[key]
        except (KeyError, IndexError, TypeError):
            continue  # `_at` reports missing parts
        length = len(here) if isinstance(here, (tuple, list)) else 0
        present = set(here if isinstance(here, Mapping) else range(length))
        if extra := sorted(map(repr, present - keys)):
            raise Misshapen(f"the gradient has parts that its argument lacks: {', '.join(extra)}")


def _shaped(part: Any, name: str, shape: tuple[int, ...], of: str) -> NDArray[np.float64]:
    """``part`` as a float64 array of this shape, which is that ``of`` something; raises Misshapen."""
    array = float_array(part, name)
    if array.shape != shape:
        raise Misshapen(f"{name} must have the shape {shape} {of}; it has {array.shape}")
    return array


def _matrix(part: Any, known: Reference, leaf: Leaf) -> Any:
    if hasattr(part, "tocsc"):
        if part.shape != (known.size, leaf.size) or part.dtype != np.float64:
            raise Misshapen(
                f"{leaf.path}: a sparse Jacobian must be float64 of shape {(known.size, leaf.size)}; "
                f"it is {part.dtype} of shape {part.shape}"
            )
        return part.tocsc()
    array = float_array(part, leaf.path)
    if array.shape != known.shape + leaf.shape:
        raise Misshapen(
            f"{leaf.path}: the Jacobian must have the value's shape before the input's, {known.shape + leaf.shape}; "
            f"it has {array.shape}"
        )
    return array.reshape(known.size, leaf.size)


def holds_single(result: Any) -> bool:
    """Whether any leaf of a result is float32."""
    return any(_type_of(leaf) == "float32" for leaf in optree.tree_leaves(result))


def in_double(result: Any) -> Any:
    """The result with its leaves below float64 as float64; the values are unchanged."""
    low = ("float32", "float16", "bfloat16")
    return optree.tree_map(lambda leaf: leaf.astype(np.float64) if _type_of(leaf) in low else leaf, result)


def _type_of(leaf: Any) -> str:
    return str(getattr(leaf, "dtype", "")) if hasattr(leaf, "astype") else ""


def float_array(part: Any, name: str) -> NDArray[np.float64]:
    """``part`` as a float64 array; raises Misshapen, with its name, for anything else."""
    try:
        array = np.asarray(part)
    except Exception as error:  # foreign array types may raise anything
        raise Misshapen(f"{name} cannot be converted to a numpy array: {type(error).__name__}: {error}") from error
    if array.dtype != np.float64:
        hint = '; set PRECISION = "float32" in a backend that computes in single precision'
        raise Misshapen(
            f"{name} must be float64; it is {array.dtype} ({kind_of(part)}){hint if array.dtype == np.float32 else ''}"
        )
    return array


def kind_of(thing: Any) -> str:
    """Description for messages: the type, and keys, length or shape."""
    if isinstance(thing, Mapping):
        return f"a {type(thing).__name__} with the keys {', '.join(sorted(map(repr, thing)))}"
    if isinstance(thing, (tuple, list)):
        return f"a {type(thing).__name__} of length {len(thing)}"
    shape = getattr(thing, "shape", None)
    return f"a {type(thing).__name__}" + (f" of shape {tuple(shape)}" if shape is not None else "")
