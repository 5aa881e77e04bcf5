"""Makes references: picks the entries and directions, and the strongest method that works for the function."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from adbench.oracle.differences import UNIT_ROUNDOFF, slope
from adbench.oracle.engine_noise import DRAWS, Noise, Sample, with_noise
from adbench.oracle.leaves import ActiveLeaf, FloatArray, Point, argument_names, direction_signs
from adbench.oracle.precise import NotPrecise, by_high_precision, contradicted_zeros
from adbench.oracle.reference import Direction, Entry, Known, Leaf, Reference
from adbench.oracle.sampling import chosen_entries

DIFFERENCES = "nine-point differences in double precision"
ENGINE_NOISE = "Monte Carlo arithmetic on the engine's tape"

EVALUATIONS_PER_SLOPE = 90
"""Typical cost of one nine-point slope: used to turn a budget of evaluations into a number of entries."""


def reference(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    wrt: Sequence[int],
    *,
    seed: int = 0,
    xp_function: Callable[..., Any] | None = None,
    noise: Noise | None = None,
    zeros: Sequence[Any] | None = None,
    names: Sequence[str] | None = None,
    max_entries: int = 64,
    max_directions: int = 4,
    max_evaluations: int = 20_000,
    max_seconds: float = 3.0,
    subtracts: float = 0.0,
) -> Reference:
    """What is known about f(*args) and its derivatives in the arguments ``wrt``.

    f runs on floats and float64 arrays and returns a scalar. ``xp_function(xp, *args)`` is the same text on a
    namespace: with it the truth comes from fifty digits, and from differences in double precision only where that
    does not work (the reference says why). ``noise`` is an engine's Monte Carlo run (`adbench.oracle.engine_noise`);
    without one the noise comes from the text. ``zeros``: for every argument in ``wrt`` None, or a boolean array
    (nested like the argument) that is true where the derivative is zero for structural reasons; ValueError where that
    is not so.

    All entries are examined where there are at most ``max_entries`` and the time allows, else a sample drawn with
    ``seed``, and up to ``max_directions`` random directions over all of them. The high precision plans for about
    ``max_seconds``, the differences for ``max_evaluations`` calls of f; both take fewer entries rather than longer.
    ``subtracts``: where the text is a difference, the size of what it subtracts.
    """
    point = Point(args, wrt, names or argument_names(f, len(args)))
    declared = [_declared(zeros, leaf) for leaf in point.leaves]
    samples, lament = _engine_runs(noise, xp_function, args, point.wrt, seed)
    reason = "the function is given as a black box"
    found = None
    if xp_function is not None:
        try:
            (found,) = by_high_precision(
                xp_function,
                point,
                seed=seed,
                max_entries=max_entries,
                max_directions=max_directions,
                max_seconds=max_seconds,
                estimate_noise=samples is None,
                fallback=lambda _, leaf, index: replace(one_slope(f, point, leaf, index)[0], kind="unsure"),
                subtracts=subtracts,
            )
        except NotPrecise as error:
            reason = str(error)
        else:
            if any(declared) and (path := contradicted_zeros(xp_function, point, declared, seed)):
                raise ValueError(f"{path}: entries declared to have a zero derivative change the function")
    if found is None:
        found = planned_differences(f, point, max_entries, max_directions, max_evaluations, seed, reason)
    if any(declared):
        leaves = zip(found.leaves, declared, strict=True)
        found = replace(found, leaves=tuple(replace(leaf, zeros=mask) for leaf, mask in leaves))
    if samples is not None:
        found = replace(with_noise(found, samples), noise=ENGINE_NOISE)
    return replace(found, reason="; ".join(filter(None, (found.reason, lament))))


def planned_differences(
    f: Callable[..., Any], point: Point, most: int, max_directions: int, evaluations: int, seed: int, reason: str
) -> Reference:
    """`by_differences` for as many of the ``most`` entries, and directions, as so many evaluations allow."""
    total = sum(leaf.values.size for leaf in point.leaves)
    whole = total <= most and total * EVALUATIONS_PER_SLOPE <= evaluations
    directions = max_directions if total and not whole else 0
    affordable = max(1, min(most, evaluations // EVALUATIONS_PER_SLOPE - directions))
    sample = chosen_entries([leaf.values.size for leaf in point.leaves], affordable, seed)
    return by_differences(f, point, sample, directions, seed, reason)


def _engine_runs(
    noise: Noise | None, xp_function: Callable[..., Any] | None, args: tuple[Any, ...], wrt: tuple[int, ...], seed: int
) -> tuple[Sequence[Sample] | None, str]:
    """The engine's plain and perturbed runs, or None and why the engine failed."""
    if noise is None or xp_function is None:
        return None, ""
    try:
        return noise(xp_function, args, wrt, DRAWS, seed), ""
    except Exception as error:  # an engine may lack an operation; the verdict must stand all the same
        return None, f"the noise is not the engine's, which failed: {type(error).__name__}: {error}"


def _declared(zeros: Sequence[Any] | None, leaf: ActiveLeaf) -> tuple[int, ...]:
    mask = None if zeros is None else zeros[leaf.position]
    for key in leaf.keys:
        mask = None if mask is None else mask[key]
    if mask is None:
        return ()
    flags = np.broadcast_to(np.asarray(mask, dtype=np.bool_), leaf.values.shape)
    return tuple(map(int, np.flatnonzero(flags)))


def by_differences(
    f: Callable[..., Any],
    point: Point,
    sample: Sequence[Sequence[int]],
    directions: int,
    seed: int,
    reason: str = "",
) -> Reference:
    """The reference that needs nothing but f itself, in double precision."""
    value, evaluations = _value(f, point, seed)
    leaves: list[Leaf] = []
    for k, leaf in enumerate(point.leaves):
        entries: list[Entry] = []
        for index in sample[k]:
            derivative, calls = one_slope(f, point, k, index)
            entries.append(Entry(index, derivative))
            evaluations += calls
        shape = tuple(map(int, leaf.values.shape))
        leaves.append(Leaf(leaf.position, leaf.keys, leaf.path, shape, leaf.scale, tuple(entries)))
    found: list[Direction] = []
    for number in range(directions):
        signs = direction_signs(seed, number, [leaf.values.shape for leaf in point.leaves])
        steps = [sign * leaf.scale for sign, leaf in zip(signs, point.leaves, strict=True)]
        derivative, calls = _slope_along(f, point, steps, 1.0)
        found.append(Direction(number, derivative))
        evaluations += calls
    return Reference(
        value,
        len(point.wrt),
        tuple(leaves),
        tuple(found),
        seed,
        DIFFERENCES,
        reason,
        evaluations,
        point.constants,
    )


def one_slope(f: Callable[..., Any], point: Point, leaf: int, index: int) -> tuple[Known, int]:
    """The derivative in one entry by nine-point differences, and the evaluations it took."""
    values = point.leaves[leaf].values
    unit = np.zeros(values.size)
    unit[index] = 1.0
    step = [unit.reshape(values.shape) if k == leaf else None for k in range(len(point.leaves))]
    return _slope_along(f, point, step, abs(float(values.flat[index])))


def _slope_along(
    f: Callable[..., Any], point: Point, step: Sequence[FloatArray | None], size: float
) -> tuple[Known, int]:
    def along(t: float) -> float:
        return nearby_value(f, point.moved([None if part is None else t * part for part in step]))

    found = slope(along, size)
    return Known(found.lower, found.upper, found.bar, 0.0, found.kind), found.evaluations


def nearby_value(f: Callable[..., Any], args: tuple[Any, ...]) -> float:
    """`plain_value`, NaN where f raises: a stencil may step out of the domain."""
    try:
        return plain_value(f, args)
    except (ArithmeticError, ValueError):
        return math.nan


def plain_value(f: Callable[..., Any], args: tuple[Any, ...]) -> float:
    """f(*args) as a float; NaN where f leaves the real numbers."""
    with np.errstate(all="ignore"):
        result = f(*args)
    array = np.asarray(result)
    if array.size != 1:
        raise TypeError(f"the function must return one number, it returned an array of shape {array.shape}")
    number = array.reshape(())[()]
    if np.iscomplexobj(number):
        return float(number.real) if number.imag == 0 else math.nan
    return float(number)


def _value(f: Callable[..., Any], point: Point, seed: int, draws: int = 6) -> tuple[Known, int]:
    """f(x), and how far it moves when every input moves by a rounding: what another order of operations may give."""
    plain = plain_value(f, point.moved([None] * len(point.leaves)))
    if not math.isfinite(plain):
        return Known(plain, plain, 0.0, 0.0, "unknown" if math.isnan(plain) else "infinite"), 1
    rng = np.random.default_rng([seed, 0x7A])
    moves = [
        [rng.uniform(-2, 2, leaf.values.shape) * UNIT_ROUNDOFF * np.abs(leaf.values) for leaf in point.leaves]
        for _ in range(draws)
    ]
    near = [nearby_value(f, point.moved(move)) for move in moves]
    spread = max((abs(other - plain) for other in near if math.isfinite(other)), default=0.0)
    return Known(plain, plain, spread + UNIT_ROUNDOFF * abs(plain)), 1 + draws
