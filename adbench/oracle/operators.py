"""The verdict on every operator, reduced to known numbers and gradients.

With v a direction, w random weights for the outputs times -2 (1 for a scalar: a forgotten cotangent shows, and
halving it is exact):

    value      f        each output, and Σ w_i f_i
    jvp        J v      each output's derivative along v, and wᵀ J v
    vjp        wᵀ J     as a gradient
    jacobian   J        each output's row as a gradient, and wᵀ J; of a scalar the gradient
    hvp        H v      the gradient of the derivative along v
    hessian    H        the Jacobian of the gradient: each row, and wᵀ H

A scalar is an array of shape () with one output and no sums. A leaf of a Jacobian is an array with the value's shape
before the input's, or a scipy.sparse matrix of (outputs, entries of the input). Entries outside a declared pattern must
be exactly zero; no entry may be NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adbench.oracle.evidence import (
    DOUBLE,
    SINGLE,
    EntryEvidence,
    ErrorSpread,
    Precision,
    compare,
    confirmed,
    entry_name,
    judging_in,
    lowest,
    not_finite,
    not_zero,
    precision,
    widened,
)
from adbench.oracle.leaves import (
    direction_weights,
    exact_products,
    output_weights,
    total,
    weighted_sum,
    weighted_sums,
)
from adbench.oracle.reference import UNKNOWN, Known, Reference, Row
from adbench.oracle.structure import (
    Misshapen,
    gradient_arrays,
    hessian_blocks,
    holds_single,
    in_double,
    jacobian_blocks,
    kind_of,
    numbers,
    scaled,
)
from adbench.oracle.verdict import (
    ComparedPart,
    Hidden,
    Verdict,
    added_up,
    compared,
    conclude,
    hidden,
    length,
    unseen,
    walked,
)

Floats = NDArray[np.float64]
LAWS = frozenset({"value", "jvp", "vjp", "jacobian", "gradient", "value_and_gradient", "hvp", "hessian"})
"""The operators with a law, by which their results are judged."""

COTANGENT = -2.0
SUMMED_EXACTLY = 1_000_000
"""Up to this many entries are summed without rounding; more are summed in pairs, which rounds a little."""


@dataclass(frozen=True)
class Nonzeros:
    """The pattern of a Jacobian: rows are flat indices of the value, columns go through all active leaves in order."""

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]


def cotangent(shape: tuple[int, ...], seed: int) -> Any:
    """The w of `vjp`: the weights of the first sum, times a factor that reveals a backend that ignores w."""
    return COTANGENT * output_weights(seed, 0, shape) if shape else COTANGENT


def along(row: Row, number: int) -> Known:
    """The derivative of f in direction v: as examined, or as a sum if every entry is known."""
    for direction in row.directions:
        if direction.number == number:
            return direction.derivative
    if any(len(leaf.entries) < leaf.size for leaf in row.leaves):
        return UNKNOWN
    weights = direction_weights(row.seed, number, [leaf.shape for leaf in row.leaves])
    lower, upper, bars, noises = [0.0], [0.0], [0.0], [0.0]
    for leaf, weight in zip(row.leaves, weights, strict=True):
        for entry in leaf.entries:
            step = leaf.scale * float(weight.flat[entry.index])
            ends = sorted((step * entry.derivative.lower, step * entry.derivative.upper))
            lower.append(ends[0])
            upper.append(ends[1])
            bars.append(abs(step) * entry.derivative.bar)
            noises.append(abs(step) * entry.derivative.noise)
        # A correct J v is a sum of rounded products, so a rounding error of the largest is allowed.
    rounding = 2.0**-53 * math.fsum(map(abs, upper)) / 8
    noise = math.hypot(math.hypot(*noises), rounding)
    return Known(total(lower), total(upper), math.fsum(bars), noise, "smooth")


def judge_operator(operator: str, result: Any, known: Reference, **options: Any) -> Verdict:
    """The verdict of `judge_entries`, with its options."""
    return judge_entries(operator, result, known, **options)[0]


def judge_entries(
    operator: str,
    result: Any,
    known: Reference,
    *,
    nonzeros: Nonzeros | None = None,
    claimed_relative_error: float | None = None,
    single: bool = False,
    within: Precision = DOUBLE,
    spread: ErrorSpread | None = None,
    agreed: Collection[str] = (),
) -> tuple[Verdict, tuple[EntryEvidence, ...]]:
    """The verdict with every compared number: the value, entries and sums; none if the structure is wrong.

    operator  one of `LAWS`
    result    in numpy, with the operator's structure
    known     of the function; for H v of its derivative along v, for hessian of its gradient
    nonzeros  the declared pattern of the Jacobian of an array-valued function
    single    accept float32, and judge a result with any float32 leaf by float32's noise
    within    the lowest arithmetic inside the function, by whose noise every result is judged
    spread    of the rounding errors of the program, in the bounds
    agreed    the places of numbers that agree with their references at neighbouring points too
    """
    chosen = lowest(SINGLE if single and holds_single(result) else DOUBLE, within)
    row, entries = known.all_outputs, list[EntryEvidence]()
    with judging_in(chosen), np.errstate(all="ignore"):  # overflow belongs to the verdict, not to numpy's warnings
        try:
            own = result if chosen is DOUBLE else in_double(result)
            parts = _compared(operator, own, known, nonzeros, claimed_relative_error)
            if spread is not None:
                parts = _widened(parts, spread)
            if agreed and chosen is DOUBLE:
                parts = [_revised(one, partial(confirmed, places=agreed)) for one in parts]
            entries = [item for one in parts for item in ([one.value] if one.value else []) + one.evidence]
            verdict = conclude(parts, row, claimed_relative_error)
        except Misshapen as error:
            verdict = Verdict("wrong", str(error), None, None, 0, 0, 0, 0, row.method, row.reason)
    if chosen is not DOUBLE:
        verdict = replace(verdict, sentence=f"in {chosen.name}: {verdict.sentence}")
    return verdict, tuple(entries)


def _widened(parts: Sequence[ComparedPart], spread: ErrorSpread) -> list[ComparedPart]:
    """The comparisons with the spread in their bounds. What could hide behind a bound grows like the bound."""

    results = [_revised(one, partial(widened, spread=spread)) for one in parts]
    before, after = ([item.bound for one in each for item in one.evidence] for each in (parts, results))
    factor = max((new / old for old, new in zip(before, after, strict=True) if new > old), default=1.0)
    return [replace(one, hidden=[each and each.times(factor) for each in one.hidden]) for one in results]


def _revised(one: ComparedPart, revise: Callable[[EntryEvidence], EntryEvidence]) -> ComparedPart:
    value = None if one.value is None else revise(one.value)
    entries, along = (list(map(revise, items)) for items in (one.entries, one.along))
    return replace(one, value=value, entries=entries, along=along)


def _compared(
    operator: str, result: Any, known: Reference, nonzeros: Nonzeros | None, claim: float | None
) -> list[ComparedPart]:
    """Every possible comparison of the operator's result."""
    row = known.all_outputs
    if operator == "value":
        return [_numbers(result, known, "the value", lambda row: row.value, claim)]
    if operator == "jvp":
        part = _numbers(result, known, "J v", lambda row: along(row, 0), claim)
        return [part if known.shape else replace(part, value_size=_products(row))]
    if operator == "vjp":
        return [_gradient(scaled(result, 1 / COTANGENT), row)]
    if operator == "hessian":
        rows = _jacobian("the Hessian", hessian_blocks(result, known), known, partial(_name_in_hessian, known))
        return rows if claim is None else [_as_one(rows)]
    if operator == "jacobian" and known.shape:
        name = partial(_name_in_jacobian, known)
        return _jacobian("the Jacobian", jacobian_blocks(result, known), known, name, nonzeros)
    if operator not in LAWS:
        raise ValueError(f"the oracle has no law for {operator}; it has {', '.join(sorted(LAWS))}")
    if known.shape:
        raise ValueError(f"an array-valued function has no {operator}")
    if operator != "value_and_gradient":
        return [_gradient(result, row)]
    if not isinstance(result, tuple) or len(result) != 2:
        raise Misshapen(f"value_and_gradient must return a pair; it returned {kind_of(result)}")
    value = _numbers(result[0], known, "the value", lambda row: row.value, claim).value
    return [replace(_gradient(result[1], row), value=value)]


EntryName = Callable[[int, str], str]
"""The name of an entry of a Jacobian or a Hessian, by the index of its row and the name of its column."""


def _name_in_jacobian(known: Reference, row: int, column: str) -> str:
    """``output[3, 1], x[2]``."""
    return f"{_place(row, known.shape)}, {column}"


def _name_in_hessian(known: Reference, row: int, column: str) -> str:
    """``H[x[3], y[1]]``."""
    start = 0
    for leaf in known.all_outputs.leaves:
        if row < start + leaf.size:
            return f"H[{entry_name(leaf.path, row - start, leaf.shape)}, {column}]"
        start += leaf.size
    raise IndexError(row)


def _gradient(result: Any, row: Row) -> ComparedPart:
    arrays = gradient_arrays(result, row)
    part = compared(arrays, row)
    known = zip(row.leaves, part.hiding, arrays, strict=True)
    return replace(part, hidden=[hidden(leaf.path, error, array, len(leaf.entries)) for leaf, error, array in known])


def _numbers(result: Any, known: Reference, name: str, of: Callable[[Row], Known], claim: float | None) -> ComparedPart:
    """One number for each output, and the sums of all; claims do not apply to sums."""
    array = numbers(result, known.shape, name)
    truths = [of(row) for _, row in known.outputs]
    scale = max((truth.size for truth in truths if math.isfinite(truth.size)), default=0.0) or 1.0
    places = [f"{name} at {_place(index, known.shape)}" if known.shape else name for index, _ in known.outputs]
    evidence = [
        compare(place, (), float(array.flat[index]), truth, scale)
        for place, (index, _), truth in zip(places, known.outputs, truths, strict=True)
    ]
    if not known.shape:
        return ComparedPart(value=evidence[0])
    if len(known.outputs) == known.size:
        return ComparedPart(entries=evidence)
    sums: list[EntryEvidence] = []
    if not np.isfinite(array).all():
        if all(math.isfinite(of(row).size) for row in known.sums):
            index = int(np.flatnonzero(~np.isfinite(array))[0])
            sums.append(not_finite(f"{name} at {_place(index, known.shape)}", (), float(array.flat[index])))
    elif claim is None:
        for number, row in enumerate(known.sums):
            weights = output_weights(row.seed, number, known.shape)
            sizes = np.abs(array * weights)
            rounding, typical = precision().rounding * float(added_up(sizes.ravel())), length(sizes)
            where = f"{name}, summed over all {known.size} outputs (weights {number} from seed {row.seed})"
            sums.append(compare(where, (), weighted_sum(array, weights), of(row), math.inf, rounding, typical))
    unseen_here = [hidden(name, unseen(sums), array, len(known.outputs))]
    return ComparedPart(entries=evidence + sums, hidden=unseen_here)


def _place(index: int, shape: tuple[int, ...]) -> str:
    """The output as an index expression: ``output[3, 1]``."""
    return entry_name("output", index, shape)


def _jacobian(
    what: str, blocks: Sequence[Any], known: Reference, name: EntryName, nonzeros: Nonzeros | None = None
) -> list[ComparedPart]:
    """Forbidden nonzeros, then every examined row, then sums over all rows if there are more."""
    leaves = known.all_outputs.leaves
    unfit = _not_finite(blocks, known, name) + _outside(blocks, known, name, nonzeros)
    rows = [
        compared(
            [_row(block, index).reshape(leaf.shape) for block, leaf in zip(blocks, leaves, strict=True)],
            row,
            named=partial(name, index),
        )
        for index, row in known.outputs
    ]
    summed = len(known.outputs) < known.size and all(math.isfinite(item.got) for item in unfit)
    sums = [_summed(blocks, known, number) for number in range(len(known.sums))] if summed else []
    parts = [*([ComparedPart(entries=unfit)] if unfit else []), *rows, *sums]
    return [*parts, ComparedPart(hidden=_hidden_in(what, blocks, known, rows, sums))]


def _as_one(rows: Sequence[ComparedPart]) -> ComparedPart:
    """All rows as one, for a claim about a whole matrix, since some rows may be zero."""
    entries, along, unseen_here = (
        list(chain.from_iterable(parts)) for parts in zip(*((r.entries, r.along, r.hidden) for r in rows), strict=True)
    )
    return ComparedPart(None, entries, along, sum_size=max(r.sum_size for r in rows), hidden=unseen_here)


def _summed(blocks: Sequence[Any], known: Reference, number: int) -> ComparedPart:
    """wᵀ J, for the weights w of the sum with this number."""
    row = known.sums[number]
    weights = output_weights(row.seed, number, known.shape).ravel()
    sums, terms = [], []
    for block, leaf in zip(blocks, row.leaves, strict=True):
        of_block, rounding, size = (array.reshape(leaf.shape) for array in _contracted(block, weights))
        sums.append(of_block)
        terms.append((rounding, size))
    what = f"the sum of all {known.size} rows (weights {number} from seed {row.seed})"
    return compared(sums, row, terms, lambda place: f"{what}, {place}")


def _hidden_in(
    what: str, blocks: Sequence[Any], known: Reference, rows: Sequence[ComparedPart], sums: Sequence[ComparedPart]
) -> list[Hidden | None]:
    """The largest error that could hide in each block: in an examined row, or in another one, which only sums
    include."""
    errors_of_blocks = []
    for k, (block, leaf) in enumerate(zip(blocks, known.all_outputs.leaves, strict=True)):
        errors = [row.hiding[k] for row in rows]
        if len(known.outputs) < known.size:
            errors.append(min((each.hiding[k] for each in sums), default=math.inf))
        numbers = block if isinstance(block, np.ndarray) else block.data
        seen = len(known.outputs) * len(leaf.entries) if isinstance(block, np.ndarray) else 0
        errors_of_blocks.append(hidden(f"{what} in {leaf.path}", max(errors, default=0.0), numbers, seen))
    return errors_of_blocks


def _row(block: Any, index: int) -> Floats:
    if isinstance(block, np.ndarray):
        return np.asarray(block[index], dtype=np.float64)
    return np.asarray(block[[index], :].toarray()[0], dtype=np.float64)


def _contracted(block: Any, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """wᵀ J, the largest sum of rounding errors of correct entries of J in it, and the length of its terms."""
    eight = precision().rounding
    if isinstance(block, np.ndarray):
        products = block * weights[:, None]
        sizes = np.abs(products)
        rounding, lengths = eight * added_up(sizes), np.sqrt(np.square(sizes).sum(axis=0))
        if block.size > SUMMED_EXACTLY:
            return products.sum(axis=0), rounding + eight * sizes.sum(axis=0), lengths
        return weighted_sums(block.T, weights), rounding, lengths
    columns = np.repeat(np.arange(block.shape[1]), np.diff(block.indptr))
    sizes = np.abs(block.data * weights[block.indices])
    totals, squares = (np.bincount(columns, terms, block.shape[1]) for terms in (sizes, sizes**2))
    (upper, lower), shift = exact_products(block.data, weights[block.indices])
    parts, ends = (upper.tolist(), lower.tolist()), pairwise(block.indptr.tolist())
    sums = [total(parts[0][start:end] + parts[1][start:end]) for start, end in ends]
    return np.ldexp(sums, shift), eight * walked(totals, squares), np.sqrt(squares)


def _nonzero(block: Any) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """Rows, columns and values of the nonzero entries."""
    if isinstance(block, np.ndarray):
        rows, columns = np.nonzero(block)
        return rows, columns, block[rows, columns]
    triplets = block.tocoo()
    return triplets.row.astype(np.intp), triplets.col.astype(np.intp), triplets.data


def _not_finite(blocks: Sequence[Any], known: Reference, name: EntryName) -> list[EntryEvidence]:
    """The first NaN or infinity of each input outside the examined rows, if all references of the sums are finite."""
    if len(known.outputs) == known.size or not all(
        math.isfinite(one.size) for row in known.sums for one in row.derivatives
    ):
        return []
    return _first_of_each(blocks, known, name, not_finite, lambda _, rows, columns, values: ~np.isfinite(values))


def _outside(
    blocks: Sequence[Any], known: Reference, name: EntryName, nonzeros: Nonzeros | None
) -> list[EntryEvidence]:
    """For each input the first nonzero entry outside the pattern."""
    if nonzeros is None:
        return []
    sizes = [leaf.size for leaf in known.all_outputs.leaves]
    starts = np.cumsum([0, *sizes])

    def stray(which: int, rows: Any, columns: Any, values: Floats) -> Any:
        start, size = starts[which], sizes[which]
        mine = (nonzeros.columns >= start) & (nonzeros.columns < start + size)
        pattern = nonzeros.rows[mine] * size + nonzeros.columns[mine] - start
        return ~np.isin(rows * size + columns, pattern) & (values != 0)

    return _first_of_each(blocks, known, name, not_zero, stray)


def _first_of_each(
    blocks: Sequence[Any],
    known: Reference,
    name: EntryName,
    evidence: Callable[[str, tuple[int, ...], float], EntryEvidence],
    unfit: Callable[[int, Any, Any, Floats], Any],
) -> list[EntryEvidence]:
    """In each block the first entry that is unfit(block's number, rows, columns, values), as evidence."""
    firsts = []
    for which, (block, leaf) in enumerate(zip(blocks, known.all_outputs.leaves, strict=True)):
        rows, columns, values = _nonzero(block)
        for k in np.flatnonzero(unfit(which, rows, columns, values))[:1]:
            entry = entry_name(leaf.path, int(columns[k]), leaf.shape)
            firsts.append(evidence(name(int(rows[k]), entry), (), float(values[k])))
    return firsts


def _products(row: Row) -> float:
    """|g| |v| over the known entries: the scale of errors in J v, which may cancel."""
    longest = math.hypot(*(e.derivative.size for leaf in row.leaves for e in leaf.entries))
    length = math.sqrt(sum(leaf.size * leaf.scale**2 for leaf in row.leaves))
    return longest * length if math.isfinite(longest * length) else 0.0
