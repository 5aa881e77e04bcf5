"""Groups of columns of a sparse matrix that can be computed together: no two columns of a group share a row.

J v with ones in a group's columns holds every entry of these columns, each in a different row, so J takes as many
directions as there are groups (Curtis, Powell and Reid (1974), "On the estimation of sparse Jacobian matrices"). This
is a graph colouring, where columns that share a row are adjacent. scipy computes the groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adbench.model import tree
from adbench.optional import library

sparse = library("scipy.sparse", "a sparse Jacobian")
# scipy.optimize's solvers use it; it has no public name and is unchanged since scipy 0.17.
group_columns = library("scipy.optimize._numdiff", "a sparse Jacobian").group_columns

Indices = Sequence[int] | NDArray[np.intp]


def groups(rows: Indices, columns: Indices, shape: tuple[int, int]) -> NDArray[np.intp]:
    """The group of every column, 0 … k-1, for a matrix of this shape with nonzeros at (rows, columns).

    Greedy, the fullest columns first. Columns without entries are all in one group.
    """
    pattern = sparse.csc_array((np.ones(len(rows)), (rows, columns)), shape=shape)
    fullest_first = np.argsort(-np.diff(pattern.indptr), kind="stable")
    return np.asarray(group_columns(pattern, order=fullest_first), dtype=np.intp)


@dataclass(frozen=True)
class Grouped:
    """The columns of a Jacobian of a declared pattern, in groups.

    x           the active inputs; their entries are the columns
    outputs     the number of entries of the value
    rows, cols  the pattern, sorted by columns
    group       of every column
    """

    x: tuple[Any, ...]
    outputs: int
    rows: NDArray[np.intp]
    cols: NDArray[np.intp]
    group: NDArray[np.intp]

    @property
    def columns(self) -> int:
        """The number of columns."""
        return self.group.size

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """The first column of each leaf of x, and the end."""
        return np.cumsum([0, *(np.size(leaf) for leaf in tree.leaves(self.x))])

    @cached_property
    def places(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The first index in the pattern of each leaf of x, and of each column."""
        return np.searchsorted(self.cols, self.starts), np.searchsorted(self.cols, np.arange(self.columns + 1))

    @property
    def directions(self) -> list[Any]:
        """One vector like x for each group, with ones in its columns."""
        starts, leaves = self.starts, tree.leaves(self.x)

        def direction(k: int) -> Any:
            ones = (self.group == k).astype(np.float64)
            parts = zip(starts, starts[1:], leaves, strict=False)
            return tree.rebuilt(self.x, [ones[a:b].reshape(np.shape(leaf)) for a, b, leaf in parts])

        return [direction(k) for k in range(int(self.group.max(initial=-1)) + 1)]

    def jacobian(self, products: Sequence[Any]) -> Any:
        """J from J v for each direction: like x, of scipy.sparse arrays of (the value's entries, the input's)."""
        starts, (places, heights) = self.starts, self.places
        values = np.stack([np.ravel(product) for product in products])[self.group[self.cols], self.rows]
        blocks = [
            sparse.csc_array(
                (values[low:high], self.rows[low:high], heights[start : end + 1] - low),
                shape=(self.outputs, end - start),
            )
            for low, high, start, end in zip(places, places[1:], starts, starts[1:], strict=False)
        ]
        return tree.filled(self.x, blocks)


def columns_in_groups(x: tuple[Any, ...], outputs: int, pattern: tuple[Sequence[int], Sequence[int]]) -> Grouped:
    """The grouped columns of a Jacobian with nonzeros at (rows, columns)."""
    order = np.lexsort((pattern[0], pattern[1]))  # by columns, as in scipy.sparse
    rows, cols = np.asarray(pattern[0])[order], np.asarray(pattern[1])[order]
    width = sum(np.size(leaf) for leaf in tree.leaves(x))
    return Grouped(x, outputs, rows, cols, groups(rows, cols, (outputs, width)))
