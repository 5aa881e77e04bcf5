"""Patterns as matrices of scipy: `tape.sparsity`, and results with new entries."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from adbench.tape.compiled.sparse.compression import Pattern
from adbench.tape.compiled.trace.record_function import WITH_MATRIX, RecordingRequest, record
from adbench.tape.fast.collector import paused
from adbench.tape.trees import flatten, name_of, tree_flatten, tree_unflatten

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Template:
    """Makes matrices of one pattern. Scipy would check the pattern again each time, in ten times the time."""

    def __init__(self, pattern: Pattern) -> None:
        from scipy.sparse import csr_array

        listed = pattern.listed()
        self.size = listed.rows.size
        ends = np.cumsum(np.bincount(listed.rows, minlength=listed.shape[0]))
        kind = np.int32 if max(self.size, *listed.shape) < 2**31 else np.int64  # as scipy chooses
        positions = listed.columns.astype(kind), np.concatenate([[0], ends]).astype(kind)
        matrix = csr_array((np.zeros(self.size), *positions), shape=listed.shape)
        matrix.has_canonical_format = True
        self._type = type(matrix)
        self._attributes = vars(matrix)
        self._indices, self._ends = matrix.indices, matrix.indptr

    def __call__(self, data: Any) -> csr_array:
        """The matrix with these entries, row by row. It shares no memory with another."""
        matrix = object.__new__(self._type)  # as copy.copy does
        attributes = self._attributes.copy()
        attributes["data"], attributes["indices"], attributes["indptr"] = data, self._indices.copy(), self._ends.copy()
        matrix.__dict__ = attributes
        return matrix


def sparse_blocks(derivative: Any, rows: Sequence[Any], columns: Sequence[Any]) -> Any:
    """The dense blocks of the eager engine for these values and inputs, each as a sparse matrix."""
    from scipy.sparse import csr_array

    blocks, structure = tree_flatten(derivative)
    shapes = [(math.prod(np.shape(y)), math.prod(np.shape(x))) for y in rows for x in columns]
    matrices = [csr_array(np.reshape(b, shape)) for b, shape in zip(blocks, shapes, strict=True)]
    return tree_unflatten(structure, matrices)


def sparsity(f: Callable[[Any], Any], x: Any, operator: str = "jacobian") -> csr_array:
    """The pattern of f's Jacobian at x, or of its Hessian, as a `scipy.sparse.csr_array` of booleans.

    It has a row for each element of f(x) (Hessian: of x) and a column for each element of x, in order, also if f(x) or
    x is a nest. An entry is missing if it is zero for all numbers on this path through f. The pattern is found from the
    recording: `if` and `while` follow x, and `where` counts both sides. It holds at every point that takes this path.

    Results of functions whose dependencies are unknown, such as eigenvalues, count as depending on all their arguments;
    a warning names them.
    """
    if operator not in WITH_MATRIX:
        raise ValueError(f"sparsity: operator: expected 'jacobian' or 'hessian', got {operator!r}")
    values, rebuild = flatten(x, "sparsity: x")
    name = name_of(f)
    active = (True,) * len(values)
    request = RecordingRequest(
        lambda given: f(rebuild(given)), name, operator, tuple(values), active, None, False, sparse=True
    )
    with paused():
        pattern = record(request, careful=False).pattern
    if pattern is None:
        raise AssertionError("a recording without its pattern")
    if pattern.opaque:
        warnings.warn(f"sparsity of {name}: counts all entries of {', '.join(pattern.opaque)}", stacklevel=3)
    template = Template(pattern)
    return template(np.ones(template.size, bool))
