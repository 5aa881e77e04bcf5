"""The verdict on functions whose value is an array: every examined output as a scalar function, and sums of all.

    value     f                each output, and Σ w_i f_i
    jacobian  J                each output's row as a gradient, and wᵀ J
    jvp       J v              each output's derivative along v, and wᵀ J v
    vjp       wᵀ J             as a gradient

A leaf of a Jacobian is an array of the value's shape before the input's, or a scipy.sparse matrix of (outputs, entries
of the input). Entries outside a declared pattern must be exactly zero, whoever examines them; no entry may be NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adbench.oracle.differences import UNIT_ROUNDOFF
from adbench.oracle.evidence import MOST_DIGITS, ROUNDINGS, EntryEvidence, compare
from adbench.oracle.leaves import output_signs
from adbench.oracle.reference import ArrayReference, Known, Leaf, Reference
from adbench.oracle.structure import Misshapen, float_array, leaf_parts, scaled
from adbench.oracle.verdict import Verdict, conclude, judge, merged, misshapen

Floats = NDArray[np.float64]
SUMMED_EXACTLY = 1_000_000
"""Entries that are summed one by one without rounding; more are summed in pairs, which rounds a little."""


@dataclass(frozen=True)
class Nonzeros:
    """The pattern of a Jacobian: rows are flat indices of the value, columns go through all active leaves in order."""

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]


def cotangent(known_shape: tuple[int, ...], seed: int, factor: float) -> Any:
    """The w that `vjp` is asked for: the signs of the first sum, times a power of two that would be missed."""
    return factor * output_signs(seed, 0, known_shape)


def judge_array_operator(
    operator: str,
    result: Any,
    known: ArrayReference,
    along: Callable[[Reference, int], Known],
    *,
    factor: float,
    nonzeros: Nonzeros | None = None,
    claimed_relative_error: float | None = None,
) -> Verdict:
    """Compares what an operator returned with what is known.

    along    along(reference, 0) -> the derivative of that output in the direction that `jvp` was asked for
    factor   of the cotangent
    """
    claim = claimed_relative_error
    try:
        if operator == "value":
            return _numbers(result, known, "the value", lambda one: one.value, claim)
        if operator == "jvp":
            return _numbers(result, known, "J v", lambda one: along(one, 0), claim)
        if operator == "vjp":
            return judge(None, scaled(result, 1 / factor), known.sums[0], claimed_relative_error=claim)
        if operator == "jacobian":
            return _jacobian(result, known, nonzeros, claim)
    except Misshapen as error:
        return misshapen(error, known.sums[0])
    raise ValueError(f"a function whose value is an array has no {operator}")


def _place(index: int, shape: tuple[int, ...]) -> str:
    """The output as one would index it: ``output[3, 1]``."""
    where = tuple(map(int, np.unravel_index(index, shape)))
    return f"output[{', '.join(map(str, where))}]" if where else "the output"


def _numbers(
    result: Any, known: ArrayReference, name: str, of: Callable[[Reference], Known], claim: float | None
) -> Verdict:
    """One number for each output."""
    array = float_array(result, name)
    if array.shape != known.shape:
        raise Misshapen(f"{name} must have the shape {known.shape} of the value; it has {array.shape}")
    truths = [of(one) for _, one in known.outputs]
    sizes = [truth.size for truth in truths if math.isfinite(truth.size)]
    scale = max(sizes, default=0.0) or 1.0
    evidence = [
        compare(f"{name} at {_place(index, known.shape)}", (), float(array.flat[index]), truth, scale)
        for (index, _), truth in zip(known.outputs, truths, strict=True)
    ]
    if claim is not None:
        return conclude(evidence, known.sums[0], claim)
    if np.isfinite(array).all():
        for number, one in enumerate(known.sums):
            products = (array * output_signs(one.seed, number, known.shape)).ravel()
            entrywise = ROUNDINGS * UNIT_ROUNDOFF * float(np.abs(products).sum())
            where = f"{name}, summed over all {known.size} outputs (signs {number} from seed {one.seed})"
            evidence.append(compare(where, (), math.fsum(products), of(one), math.inf, entrywise))
    elif all(math.isfinite(of(one).size) for one in known.sums):
        index = int(np.flatnonzero(~np.isfinite(array))[0])
        evidence.append(_unfit(f"{name} at {_place(index, known.shape)}", (), float(array.flat[index])))
    return conclude(evidence, known.sums[0])


def _jacobian(result: Any, known: ArrayReference, nonzeros: Nonzeros | None, claim: float | None) -> Verdict:
    leaves = known.sums[0].leaves
    blocks = [_matrix(part, known, leaf) for part, leaf in zip(leaf_parts(result, known.sums[0]), leaves, strict=True)]
    unfit = _not_finite(blocks, known, leaves) + _outside(blocks, known, leaves, nonzeros)
    verdicts = [conclude(unfit, known.sums[0])] if unfit else []
    for index, one in known.outputs:
        rows = [_row(block, index).reshape(leaf.shape) for block, leaf in zip(blocks, leaves, strict=True)]
        verdicts.append(_judged(rows, one, _place(index, known.shape), claim))
    if all(math.isfinite(item.got) for item in unfit):
        for number, one in enumerate(known.sums):
            signs = output_signs(one.seed, number, known.shape).ravel()
            sums = [_contracted(block, signs) for block in blocks]
            rows = [total.reshape(leaf.shape) for (total, _), leaf in zip(sums, leaves, strict=True)]
            allowed = [size.reshape(leaf.shape) for (_, size), leaf in zip(sums, leaves, strict=True)]
            where = f"the sum of all {known.size} outputs (signs {number} from seed {one.seed})"
            verdicts.append(_judged(rows, one, where, claim, allowed))
    return merged(verdicts, known.sums[0])


def _judged(
    rows: Sequence[Floats], one: Reference, where: str, claim: float | None, allowances: Sequence[Floats] | None = None
) -> Verdict:
    """A row of the Jacobian as a gradient."""
    leaves = tuple(replace(leaf, position=k, keys=()) for k, leaf in enumerate(one.leaves))
    flat = replace(one, count=len(leaves), leaves=leaves, constants=())
    return judge(None, tuple(rows), flat, claimed_relative_error=claim, allowances=allowances, of=f"{where}, ")


def _matrix(part: Any, known: ArrayReference, leaf: Leaf) -> Any:
    """The part of a Jacobian as a matrix of (outputs, entries of the leaf): an array, or sparse by columns."""
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


def _row(block: Any, index: int) -> Floats:
    if isinstance(block, np.ndarray):
        return np.asarray(block[index], dtype=np.float64)
    return np.asarray(block[[index], :].toarray()[0], dtype=np.float64)


def _contracted(block: Any, signs: Floats) -> tuple[Floats, Floats]:
    """wᵀ J, and what the roundings of right entries of J may add up to in it."""
    if isinstance(block, np.ndarray):
        products = np.ascontiguousarray((block * signs[:, None]).T)
        sizes = np.abs(products).sum(axis=1)
        if products.size > SUMMED_EXACTLY:
            return products.sum(axis=1), 2 * ROUNDINGS * UNIT_ROUNDOFF * sizes
        sums = np.array([math.fsum(column) for column in products])
    else:
        products = block.data * signs[block.indices]
        ends = list(zip(block.indptr[:-1], block.indptr[1:], strict=True))
        sums = np.array([math.fsum(products[start:end]) for start, end in ends])
        sizes = np.array([float(np.abs(products[start:end]).sum()) for start, end in ends])
    return sums.astype(np.float64), ROUNDINGS * UNIT_ROUNDOFF * sizes


def _entries(block: Any) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """Rows, columns and values of the entries that are not zero."""
    if isinstance(block, np.ndarray):
        rows, columns = np.nonzero(block)
        return rows, columns, block[rows, columns]
    found = block.tocoo()
    return found.row.astype(np.intp), found.col.astype(np.intp), found.data


def _not_finite(blocks: Sequence[Any], known: ArrayReference, leaves: Sequence[Leaf]) -> list[EntryEvidence]:
    """The first NaN or infinity of each input, where all derivatives that were examined are finite."""
    examined = [e.derivative for one in known.sums for leaf in one.leaves for e in leaf.entries]
    examined += [d.derivative for one in known.sums for d in one.directions]
    if not all(math.isfinite(one.size) for one in examined):
        return []
    found = []
    for block, leaf in zip(blocks, leaves, strict=True):
        rows, columns, values = _entries(block)
        for k in np.flatnonzero(~np.isfinite(values))[:1]:
            where = f"{_place(int(rows[k]), known.shape)}, {leaf.path}"
            found.append(_unfit(where, _index(int(columns[k]), leaf), float(values[k])))
    return found


def _outside(
    blocks: Sequence[Any], known: ArrayReference, leaves: Sequence[Leaf], nonzeros: Nonzeros | None
) -> list[EntryEvidence]:
    """For each input the first entry that is not zero although the pattern has nothing there."""
    if nonzeros is None:
        return []
    found, start = [], 0
    for block, leaf in zip(blocks, leaves, strict=True):
        rows, columns, values = _entries(block)
        mine = (nonzeros.columns >= start) & (nonzeros.columns < start + leaf.size)
        pattern = nonzeros.rows[mine] * leaf.size + nonzeros.columns[mine] - start
        stray = np.flatnonzero(~np.isin(rows * leaf.size + columns, pattern) & (values != 0))
        start += leaf.size
        for k in stray[:1]:
            where, index, got = f"{_place(int(rows[k]), known.shape)}, {leaf.path}", int(columns[k]), float(values[k])
            place = _index(index, leaf)
            found.append(EntryEvidence(where, place, got, 0.0, (0.0, 0.0), 0.0, "wrong", 0.0, MOST_DIGITS))
    return found


def _index(index: int, leaf: Leaf) -> tuple[int, ...]:
    return tuple(map(int, np.unravel_index(index, leaf.shape))) if leaf.shape else ()


def _unfit(where: str, index: tuple[int, ...], got: float) -> EntryEvidence:
    interval = (-math.inf, math.inf)
    return EntryEvidence(where, index, got, math.nan, interval, 0.0, "wrong", 0.0, 0.0)
