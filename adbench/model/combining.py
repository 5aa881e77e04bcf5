"""Derivatives combined from the results of other operators: the ways of fallbacks.

All numbers are numpy's. A scalar is an array of shape (): its Jacobian has one row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adbench.model import tree
from adbench.model.errors import Unsupported

Shape = tuple[int, ...]


@dataclass(slots=True)
class Here:
    """The operators of a fallback, at the current inputs: `here(operator, *vectors)`, all in numpy.

    x: the active inputs; vectors: v or w, if the operator takes one; shape: the value's.
    """

    call: Callable[..., Any]
    x: tuple[Any, ...]
    vectors: tuple[Any, ...]
    shape: Shape

    def __call__(self, operator: str, *vectors: Any) -> Any:
        """The result of the backend's operator."""
        return self.call(operator, *vectors)


def by_columns(here: Here) -> Any:
    """J, column by column: J e for every unit vector e of the inputs."""
    return _stacked([_of_shape(here("jvp", unit), here.shape) for unit in tree.units(here.x)], here.shape, here.x)


def _stacked(columns: Sequence[Any], shape: Shape, x: tuple[Any, ...]) -> Any:
    """Columns of this shape, one for every entry of x, as arrays like x's leaves with this shape before theirs."""
    following = iter(columns)

    def leaf(value: Any) -> Any:
        mine = [next(following) for _ in range(np.size(value))]
        stacked = np.stack(mine, axis=-1) if mine else np.zeros((*shape, 0))
        return stacked.reshape(shape + np.shape(value))

    return tree.map_leaves(leaf, x)


def _of_shape(value: Any, shape: Shape) -> Any:
    if not shape and np.shape(value) != ():
        raise Unsupported(f"this fallback needs a scalar function; its value has shape {np.shape(value)}")
    return value


def by_rows(here: Here) -> Any:
    """J, row by row: eᵀ J for every unit vector e of the value; a scalar's only row is unchanged."""
    if not here.shape:
        return here("vjp", 1.0)
    rows = [tree.leaves(here("vjp", unit)) for unit in _unit_values(here.shape)]
    leaves = enumerate(tree.leaves(here.x))
    return tree.filled(
        here.x, [np.reshape([row[k] for row in rows], here.shape + np.shape(leaf)) for k, leaf in leaves]
    )


def _unit_values(shape: Shape) -> Iterator[Any]:
    for place in np.ndindex(shape):
        unit = np.zeros(shape)
        unit[place] = 1.0
        yield unit


def dense_jacobian(here: Here) -> Any:
    """J in arrays, also if the library returns scipy.sparse's."""
    pairs = zip(tree.leaves(here("jacobian")), tree.leaves(here.x), strict=True)
    return tree.filled(here.x, [np.reshape(tree.dense(block), here.shape + np.shape(x)) for block, x in pairs])


def times(here: Here, jacobian: Any) -> Any:
    """J v = Σ over the inputs' entries."""
    pairs = zip(tree.leaves(jacobian), tree.leaves(here.vectors[0]), strict=True)
    if not here.shape:
        return sum(np.sum(block * step) for block, step in pairs)
    return sum(np.tensordot(block, step, axes=np.ndim(step)) for block, step in pairs)


def from_left(here: Here, jacobian: Any) -> Any:
    """wᵀ J = Σ over the value's entries."""
    w = _of_shape(here.vectors[0], here.shape)
    if not here.shape:
        return tree.map_leaves(lambda row: row * w, jacobian)
    return tree.map_leaves(lambda block: np.tensordot(w, block, axes=np.ndim(w)), jacobian)


def hessian_by_columns(here: Here, hvp: str = "hvp") -> Any:
    """For every leaf of x the blocks for all leaves of x, column by column: H e for every unit vector e."""
    columns = [tree.leaves(here(hvp, unit)) for unit in tree.units(here.x)]
    shapes = enumerate(map(np.shape, tree.leaves(here.x)))
    return tree.filled(here.x, [_stacked([column[k] for column in columns], shape, here.x) for k, shape in shapes])


def hvp_by_hessian(here: Here) -> Any:
    """For every leaf of x: Σ over the leaves of v of block times vector."""
    steps = [np.asarray(step) for step in tree.leaves(here.vectors[0])]
    blocks = tree.leaves(here("hessian"))
    rows = [blocks[start : start + len(steps)] for start in range(0, len(blocks), len(steps))]
    sums = [sum(np.tensordot(b, v, axes=v.ndim) for b, v in zip(row, steps, strict=True)) for row in rows]
    return tree.filled(here.x, sums)
