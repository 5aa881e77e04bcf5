"""Columns of a sparse matrix in groups that can be found together: two columns of a group share no row.

J v with ones in a group's columns holds every entry of these columns, each in a row of its own, so that the whole of J
takes as many directions as there are groups (Curtis, Powell and Reid (1974), "On the estimation of sparse Jacobian
matrices"). It is a colouring of the graph in which columns are joined that share a row. The groups are scipy's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

# What scipy.optimize's own solvers group by; it has no public name, and is the same since scipy 0.17.
from scipy.optimize._numdiff import group_columns

Indices = Sequence[int] | NDArray[np.intp]


def groups(rows: Indices, columns: Indices, shape: tuple[int, int]) -> NDArray[np.intp]:
    """The group of every column, 0 … k-1, for a matrix of this shape whose entries are zero but at (rows, columns).

    Greedy, the fullest columns first. Columns without entries are all in one group.
    """
    pattern = sparse.csc_array((np.ones(len(rows)), (rows, columns)), shape=shape)
    fullest_first = np.argsort(-np.diff(pattern.indptr), kind="stable")
    return np.asarray(group_columns(pattern, order=fullest_first), dtype=np.intp)
