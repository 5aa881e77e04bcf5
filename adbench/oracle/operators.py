"""The verdict on every operator, each brought back to numbers and gradients that are known.

With v a direction of signs and powers of two (so that products with it are exact), and w = -2 times signs, 1 for a
scalar: a forgotten cotangent shows, and halving it is exact:

    value      f        each output, and Σ w_i f_i
    jvp        J v      each output's derivative along v, and wᵀ J v
    vjp        wᵀ J     as a gradient
    jacobian   J        each output's row as a gradient, and wᵀ J; of a scalar the gradient
    hvp        H v      the gradient of a difference quotient (`adbench.oracle.second_order`)
    hessian    H        H v as for hvp, for two directions v

A scalar is an array of shape (): its one output is all there is, without sums. A leaf of a Jacobian is an array of the
value's shape before the input's, or a scipy.sparse matrix of (outputs, entries of the input). Entries outside a
declared pattern must be exactly zero; no entry may be NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import optree
from numpy.typing import NDArray

from adbench.oracle.differences import UNIT_ROUNDOFF
from adbench.oracle.evidence import ROUNDINGS, EntryEvidence, compare, not_finite, not_zero, place_of
from adbench.oracle.leaves import direction_signs, output_signs
from adbench.oracle.reference import Known, Reference, Row
from adbench.oracle.structure import Misshapen, gradient_arrays, jacobian_blocks, kind_of, numbers, scaled
from adbench.oracle.verdict import WORDS, Comparison, Verdict, compared, conclude

Floats = NDArray[np.float64]
COTANGENT = -2.0
UNKNOWN = Known(math.nan, math.nan, math.nan, 0.0, "unknown")
SUMMED_EXACTLY = 1_000_000
"""Entries that are summed one by one without rounding; more are summed in pairs, which rounds a little."""


@dataclass(frozen=True)
class Nonzeros:
    """The pattern of a Jacobian: rows are flat indices of the value, columns go through all active leaves in order."""

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]


def cotangent(shape: tuple[int, ...], seed: int, factor: float = COTANGENT) -> Any:
    """The w of `vjp`: the signs of the first sum, times a factor that shows where a backend forgets it."""
    return factor * output_signs(seed, 0, shape) if shape else factor


def along(row: Row, number: int) -> Known:
    """The derivative of f in direction v: as examined, or summed where every entry is known."""
    for found in row.directions:
        if found.number == number:
            return found.derivative
    if any(len(leaf.entries) < leaf.size for leaf in row.leaves):
        return UNKNOWN
    signs = direction_signs(row.seed, number, [leaf.shape for leaf in row.leaves])
    lower, upper, bars, noises = [0.0], [0.0], [0.0], [0.0]
    for leaf, sign in zip(row.leaves, signs, strict=True):
        for entry in leaf.entries:
            step = leaf.scale * float(sign.flat[entry.index])
            ends = sorted((step * entry.derivative.lower, step * entry.derivative.upper))
            lower.append(ends[0])
            upper.append(ends[1])
            bars.append(abs(step) * entry.derivative.bar)
            noises.append(abs(step) * entry.derivative.noise)
    # A right J v is a sum of rounded products: a rounding of the largest is no fault of it.
    rounding = 2.0**-53 * math.fsum(map(abs, upper)) / 8
    noise = math.hypot(math.hypot(*noises), rounding)
    return Known(math.fsum(lower), math.fsum(upper), math.fsum(bars), noise, "smooth")


def judge_operator(
    operator: str,
    result: Any,
    known: Reference,
    seconds: Sequence[tuple[Any, Reference]] = (),
    *,
    nonzeros: Nonzeros | None = None,
    claimed_relative_error: float | None = None,
) -> Verdict:
    """Compares what an operator returned with what is known.

    result    in numpy, of the structure that the operator promises
    seconds   for hvp and hessian: directions v, each with the reference of H v; hvp was asked for the first
    nonzeros  the declared pattern of the Jacobian of a function whose value is an array
    """
    claim = claimed_relative_error
    if operator == "hvp":
        return judge_operator("gradient", result, seconds[0][1], claimed_relative_error=claim)
    if operator == "hessian":
        products = [(_times(result, v), second) for v, second in seconds]
        verdicts = [judge_operator("gradient", *pair, claimed_relative_error=claim) for pair in products]
        return max(verdicts, key=lambda verdict: WORDS.index(verdict.word))
    try:
        with np.errstate(all="ignore"):  # a gradient of 1e300s is somebody's wrong answer, not our warning
            found = _compared(operator, result, known, nonzeros, claim)
            return conclude(found, known.all_outputs, claim)
    except Misshapen as error:
        row = known.all_outputs
        return Verdict("wrong", str(error), None, None, 0, 0, 0, 0, row.method, row.reason)


def _compared(
    operator: str, result: Any, known: Reference, nonzeros: Nonzeros | None, claim: float | None
) -> list[Comparison]:
    """Comparisons of first order."""
    row = known.all_outputs
    if operator == "value":
        return [_numbers(result, known, "the value", lambda row: row.value, claim)]
    if operator == "jvp":
        found = _numbers(result, known, "J v", lambda row: along(row, 0), claim)
        return [found if known.shape else replace(found, value_size=_products(row))]
    if operator == "vjp":
        return [_gradient(scaled(result, 1 / COTANGENT), row)]
    if operator == "jacobian" and known.shape:
        return _jacobian(result, known, nonzeros)
    if known.shape:
        raise ValueError(f"a function whose value is an array has no {operator}")
    if operator != "value_and_gradient":
        return [_gradient(result, row)]
    if not isinstance(result, tuple) or len(result) != 2:
        raise Misshapen(f"value_and_gradient must return a pair; it returned {kind_of(result)}")
    value = _numbers(result[0], known, "the value", lambda row: row.value, claim).value
    return [replace(_gradient(result[1], row), value=value)]


def _gradient(result: Any, row: Row) -> Comparison:
    return compared(gradient_arrays(result, row), row)


def _numbers(result: Any, known: Reference, name: str, of: Callable[[Row], Known], claim: float | None) -> Comparison:
    """One number for each output, and what the sums of all say; sums are no part of a claim."""
    array = numbers(result, known.shape, name)
    truths = [of(row) for _, row in known.outputs]
    scale = max((truth.size for truth in truths if math.isfinite(truth.size)), default=0.0) or 1.0
    places = [f"{name} at {_place(index, known.shape)}" if known.shape else name for index, _ in known.outputs]
    evidence = [
        compare(place, (), float(array.flat[index]), truth, scale)
        for place, (index, _), truth in zip(places, known.outputs, truths, strict=True)
    ]
    if not known.shape:
        return Comparison(value=evidence[0])
    if not np.isfinite(array).all():
        if all(math.isfinite(of(row).size) for row in known.sums):
            index = int(np.flatnonzero(~np.isfinite(array))[0])
            evidence.append(not_finite(f"{name} at {_place(index, known.shape)}", (), float(array.flat[index])))
    elif claim is None:
        for number, row in enumerate(known.sums):
            products = (array * output_signs(row.seed, number, known.shape)).ravel()
            entrywise = ROUNDINGS * UNIT_ROUNDOFF * float(np.abs(products).sum())
            where = f"{name}, summed over all {known.size} outputs (signs {number} from seed {row.seed})"
            evidence.append(compare(where, (), math.fsum(products), of(row), math.inf, entrywise))
    return Comparison(entries=evidence)


def _place(index: int, shape: tuple[int, ...]) -> str:
    """The output as one would index it: ``output[3, 1]``."""
    return f"output[{', '.join(map(str, place_of(index, shape)))}]"


def _jacobian(jacobian: Any, known: Reference, nonzeros: Nonzeros | None) -> list[Comparison]:
    """Every examined row, the sums of all rows, and first what must not be in any."""
    leaves = known.all_outputs.leaves
    blocks = jacobian_blocks(jacobian, known)
    unfit = _not_finite(blocks, known) + _outside(blocks, known, nonzeros)
    found = [Comparison(entries=unfit)] if unfit else []
    for index, row in known.outputs:
        rows = [_row(block, index).reshape(leaf.shape) for block, leaf in zip(blocks, leaves, strict=True)]
        found.append(compared(rows, row, of=f"{_place(index, known.shape)}, "))
    if all(math.isfinite(item.got) for item in unfit):
        for number, row in enumerate(known.sums):
            signs = output_signs(row.seed, number, known.shape).ravel()
            sums = [_contracted(block, signs) for block in blocks]
            rows = [total.reshape(leaf.shape) for (total, _), leaf in zip(sums, leaves, strict=True)]
            allowed = [size.reshape(leaf.shape) for (_, size), leaf in zip(sums, leaves, strict=True)]
            of = f"the sum of all {known.size} outputs (signs {number} from seed {row.seed}), "
            found.append(compared(rows, row, allowed, of))
    return found


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


def _nonzero(block: Any) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """Rows, columns and values of the entries that are not zero."""
    if isinstance(block, np.ndarray):
        rows, columns = np.nonzero(block)
        return rows, columns, block[rows, columns]
    found = block.tocoo()
    return found.row.astype(np.intp), found.col.astype(np.intp), found.data


def _not_finite(blocks: Sequence[Any], known: Reference) -> list[EntryEvidence]:
    """The first NaN or infinity of each input, where all derivatives that were examined are finite."""
    if not all(math.isfinite(one.size) for row in known.sums for one in row.derivatives):
        return []
    return _first_of_each(blocks, known, not_finite, lambda _, rows, columns, values: ~np.isfinite(values))


def _outside(blocks: Sequence[Any], known: Reference, nonzeros: Nonzeros | None) -> list[EntryEvidence]:
    """For each input the first entry that is not zero although the pattern has nothing there."""
    if nonzeros is None:
        return []
    sizes = [leaf.size for leaf in known.all_outputs.leaves]
    starts = np.cumsum([0, *sizes])

    def stray(which: int, rows: Any, columns: Any, values: Floats) -> Any:
        start, size = starts[which], sizes[which]
        mine = (nonzeros.columns >= start) & (nonzeros.columns < start + size)
        pattern = nonzeros.rows[mine] * size + nonzeros.columns[mine] - start
        return ~np.isin(rows * size + columns, pattern) & (values != 0)

    return _first_of_each(blocks, known, not_zero, stray)


def _first_of_each(
    blocks: Sequence[Any],
    known: Reference,
    evidence: Callable[[str, tuple[int, ...], float], EntryEvidence],
    unfit: Callable[[int, Any, Any, Floats], Any],
) -> list[EntryEvidence]:
    """In each block the first entry that is unfit(block's number, rows, columns, values), as evidence."""
    found = []
    for which, (block, leaf) in enumerate(zip(blocks, known.all_outputs.leaves, strict=True)):
        rows, columns, values = _nonzero(block)
        for k in np.flatnonzero(unfit(which, rows, columns, values))[:1]:
            where = f"{_place(int(rows[k]), known.shape)}, {leaf.path}"
            found.append(evidence(where, place_of(int(columns[k]), leaf.shape), float(values[k])))
    return found


def _times(hessian: Any, v: Any) -> Any:
    """H v: for every leaf of the arguments Σ over the leaves of v of its block times v's, nested like the arguments."""
    steps = [np.asarray(step, dtype=np.float64) for step in optree.tree_leaves(v)]

    def along_row(row: Any, like: Any) -> Any:
        blocks = [np.asarray(block) for block in optree.tree_leaves(row)]
        structure = optree.tree_structure(like)
        if len(blocks) != len(steps) * structure.num_leaves:
            return row  # misshapen: the comparison refuses it
        rows = [blocks[start : start + len(steps)] for start in range(0, len(blocks), len(steps))]
        sums = [sum(np.tensordot(b, s, axes=s.ndim) for b, s in zip(row, steps, strict=True)) for row in rows]
        return optree.tree_unflatten(structure, sums)

    if not isinstance(hessian, tuple) or len(hessian) != len(v):
        return hessian
    return tuple(along_row(row, like) for row, like in zip(hessian, v, strict=True))


def _products(row: Row) -> float:
    """|g| |v|, of the entries known: where J v cancels, an error that is a share of the gradient is no fault of it."""
    longest = math.hypot(*(e.derivative.size for leaf in row.leaves for e in leaf.entries))
    length = math.sqrt(sum(leaf.size * leaf.scale**2 for leaf in row.leaves))
    return longest * length if math.isfinite(longest * length) else 0.0
