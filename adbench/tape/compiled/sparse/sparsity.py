"""`tape.sparsity`: the pattern of a Jacobian or Hessian."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from adbench.tape.compiled.sparse.sparse_results import csr
from adbench.tape.compiled.trace.record_function import WITH_MATRIX, RecordingRequest, record
from adbench.tape.fast.collector import paused
from adbench.tape.trees import flatten, name_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array


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
    return csr(pattern, np.ones(pattern.listed().rows.size, bool))
