"""Groups of columns of a sparse matrix that can be computed together: no two columns of a group share a row.

J v with ones in a group's columns holds every entry of these columns, each in a different row, so J takes as many
directions as there are groups (Curtis, Powell and Reid (1974), "On the estimation of sparse Jacobian matrices"). This
is a graph colouring, where columns that share a row are adjacent. scipy computes the groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adbench.model import tree
from adbench.optional import library

sparse = library("scipy.sparse", "a sparse Jacobian")
# scipy.optimize's solvers use it; it has no public name and is unchanged since scipy 0.17.
group_columns = library("scipy.optimize._numdiff", "a sparse Jacobian").group_columns

Indices = Sequence[int] | NDArray[np.intp]


def groups(pattern: Any) -> NDArray[np.intp]:
    """The group of every column, 0 … k-1, of a csc_array with this pattern of nonzeros.

    Greedy, the fullest columns first. Columns without entries are all in one group.
    """
    fullest_first = np.argsort(-np.diff(pattern.indptr), kind="stable")
    return np.asarray(group_columns(pattern, order=fullest_first), dtype=np.intp)


class GroupedColumns:
    """The columns of a Jacobian in groups.

    x              the active inputs; their entries are the columns
    outputs        the number of entries of the value
    rows, columns  the places of its nonzeros
    """

    def __init__(self, x: tuple[Any, ...], outputs: int, rows: Indices, columns: Indices) -> None:
        self.x, self._ends = x, np.cumsum([0, *(np.size(leaf) for leaf in tree.leaves(x))])
        self._pattern = sparse.csc_array((np.ones(len(rows)), (rows, columns)), shape=(outputs, self._ends[-1]))
        self._group = groups(self._pattern)
        self._group_of_entry = np.repeat(self._group, np.diff(self._pattern.indptr))

    @property
    def count(self) -> int:
        """The number of columns."""
        return self._group.size

    @property
    def directions(self) -> list[Any]:
        """One vector like x for each group, with ones in its columns."""
        every = range(int(self._group.max(initial=-1)) + 1)
        shapes = [np.shape(leaf) for leaf in tree.leaves(self.x)]
        of_leaves = [np.split((self._group == k).astype(np.float64), self._ends[1:-1]) for k in every]
        return [tree.rebuilt(self.x, list(map(np.reshape, parts, shapes))) for parts in of_leaves]

    def jacobian(self, products: Sequence[Any]) -> Any:
        """J from J v for each direction: like x, of scipy.sparse arrays of (the value's entries, the input's)."""
        rows, heights = self._pattern.indices, self._pattern.indptr
        values = np.stack([np.ravel(product) for product in products])[self._group_of_entry, rows]
        blocks = []
        for start, end in pairwise(self._ends):
            low, high = heights[start], heights[end]
            parts = values[low:high], rows[low:high], heights[start : end + 1] - low
            blocks.append(sparse.csc_array(parts, shape=(self._pattern.shape[0], end - start)))
        return tree.filled(self.x, blocks)
