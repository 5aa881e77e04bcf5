"""The verdict on every operator, each brought back to a number or a gradient that is known.

With v a direction of signs and powers of two (so that products with it are exact), and w = -2:

    jvp       J v           a number: the derivative of f along v
    vjp       wᵀ J          -2 times the gradient: a forgotten cotangent shows, and halving it is exact
                            (of a function whose value is an array: w = -2 times signs)
    jacobian  J             of a scalar function: the gradient
    hvp       H v           the gradient of φ(x) = (f(x + εv) - f(x - εv)) / 2ε
    hessian   H             H v as for hvp, for two directions v

φ is a text like f, and at fifty digits ε = 2^-40 makes it and its gradient exact to 2^-80: second order costs no new
machinery. Where f's text does not run at fifty digits, nothing is known of second order, and the verdict says so.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import optree

from adbench.oracle.array_verdict import Nonzeros, judge_array_operator
from adbench.oracle.compute import reference
from adbench.oracle.leaves import Point, argument_names, direction_signs
from adbench.oracle.precise import METHOD as HIGH_PRECISION
from adbench.oracle.reference import ArrayReference, Entry, Known, Leaf, Reference
from adbench.oracle.structure import scaled
from adbench.oracle.verdict import WORDS, Verdict, judge

COTANGENT = -2.0
HESSIAN_DIRECTIONS = (0, 1)
EPSILON = 2.0**-40
SECOND_NOISE = "squared from the noise of the gradient"
UNKNOWN = Known(math.nan, math.nan, math.nan, 0.0, "unknown")


def direction(args: Sequence[Any], wrt: Sequence[int], seed: int, number: int) -> tuple[Any, ...]:
    """The direction v with this number, a tuple like the active arguments: signs times each leaf's scale."""
    point = Point(tuple(args), wrt, argument_names(direction, len(args)))
    signs = direction_signs(seed, number, [leaf.values.shape for leaf in point.leaves])
    steps = [leaf.scale * sign for leaf, sign in zip(point.leaves, signs, strict=True)]
    moved = point.replaced([step if step.ndim else float(step) for step in steps])
    return tuple(moved[position] for position in wrt)


def along(known: Reference, number: int) -> Known:
    """The derivative of f in direction v: as examined, or summed where every entry is known."""
    for found in known.directions:
        if found.number == number:
            return found.derivative
    if any(len(leaf.entries) < leaf.size for leaf in known.leaves):
        return UNKNOWN
    signs = direction_signs(known.seed, number, [leaf.shape for leaf in known.leaves])
    lower, upper, bars, noises = [0.0], [0.0], [0.0], [0.0]
    for leaf, sign in zip(known.leaves, signs, strict=True):
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


def second_order(
    xp_function: Callable[..., Any],
    args: tuple[Any, ...],
    wrt: Sequence[int],
    number: int,
    first: Reference,
    *,
    seed: int = 0,
    names: Sequence[str] | None = None,
    max_seconds: float = 3.0,
) -> Reference:
    """What is known about H v, v being direction `number`: the reference of φ, whose gradient it is.

    first: what is known of first order, for the noise.
    """
    v = direction(args, wrt, seed, number)
    more = {"seed": seed, "names": names, "max_seconds": max_seconds}
    found = _along_gradient(xp_function, args, wrt, v, first, **more)
    scale = _largest(found)
    if scale < _largest(first):
        # Column by column H may be larger than H v, as where f stays the same along v; rounding is of the columns.
        half = _every_second(v)
        scale = max(scale, _largest(_along_gradient(xp_function, args, wrt, half, first, **more, max_entries=16)))
    return _with_second_noise(found, first, scale)


def _along_gradient(
    xp_function: Callable[..., Any],
    args: tuple[Any, ...],
    wrt: Sequence[int],
    v: tuple[Any, ...],
    first: Reference,
    **more: Any,
) -> Reference:
    """H v without its noise."""

    def phi(xp: Any, *point: Any) -> Any:
        def shifted(side: float) -> tuple[Any, ...]:
            every = list(point)
            for position, step in zip(wrt, v, strict=True):
                every[position] = optree.tree_map(lambda x, s: x + side * EPSILON * s, every[position], step)
            return tuple(every)

        return (xp_function(xp, *shifted(1.0)) - xp_function(xp, *shifted(-1.0))) / (2.0 * EPSILON)

    def unknown(*_: Any) -> float:
        return math.nan

    size = first.value.size
    return reference(
        unknown,
        args,
        wrt,
        xp_function=phi,
        noise=_no_noise,
        max_evaluations=90,
        subtracts=size / EPSILON if math.isfinite(size) else 0.0,
        **more,
    )


def _every_second(v: Any) -> Any:
    """v with every second of its entries zero, counted through all its leaves."""
    count = itertools.count()

    def thinned(leaf: Any) -> Any:
        array = np.array(leaf, dtype=np.float64)
        for place in np.ndindex(array.shape):
            array[place] *= next(count) % 2
        return array if array.ndim else float(array)

    return optree.tree_map(thinned, v)


def _largest(known: Reference) -> float:
    """The largest derivative in size, of those that are finite; 0 where none is."""
    derivatives = [e.derivative for leaf in known.leaves for e in leaf.entries]
    derivatives += [d.derivative for d in known.directions]
    return max((d.size for d in derivatives if math.isfinite(d.size)), default=0.0)


def _no_noise(_: Any, args: tuple[Any, ...], wrt: Sequence[int], *__: int) -> list[tuple[float, Any]]:
    """Double precision under φ would show the noise of a difference quotient, which no library takes."""
    still = tuple(optree.tree_map(lambda leaf: np.zeros(np.shape(leaf)), args[position]) for position in wrt)
    return [(0.0, still)] * 3


def _with_second_noise(found: Reference, first: Reference, scale: float) -> Reference:
    """H v with the noise that the gradient's own suggests: u κ² scale, κ = the gradient's noise in units of u |g|.

    A bound on the largest entry, so it hides errors in entries far smaller; an engine's Monte Carlo run would tell.
    Where H v is zero, a rounding of the gradient is none of a library's faults: v is as large as x, and the derivative
    of f / x, as a product's is often written, vanishes to rounding only.
    """
    entries = [e.derivative for leaf in first.leaves for e in leaf.entries] + [d.derivative for d in first.directions]
    finite = [e for e in entries if math.isfinite(e.size) and math.isfinite(e.noise)]
    size = max((e.size for e in finite), default=0.0)
    kappa = max((e.noise for e in finite), default=0.0) / (2.0**-53 * size) if size else 1.0
    noise = 2.0**-53 * max(1.0, kappa) ** 2 * scale

    def noisy(known: Known) -> Known:
        of_zero = 2.0**-53 * size if known.size == 0 else 0.0
        return replace(known, noise=max(noise, of_zero)) if math.isfinite(known.size) else known

    leaves = tuple(
        replace(leaf, entries=tuple(Entry(e.index, noisy(e.derivative)) for e in leaf.entries)) for leaf in found.leaves
    )
    directions = tuple(replace(d, derivative=noisy(d.derivative)) for d in found.directions)
    return replace(found, leaves=leaves, directions=directions, noise=SECOND_NOISE)


def declared(
    value: float, gradient: Sequence[Any], args: tuple[Any, ...], wrt: Sequence[int], names: Sequence[str]
) -> Reference:
    """A reference from a gradient that is the truth by declaration: no difference of f could know it."""
    point = Point(args, wrt, names)
    parts = [np.asarray(leaf, dtype=np.float64) for part in gradient for leaf in optree.tree_leaves(part)]
    leaves = tuple(
        Leaf(
            leaf.position,
            leaf.keys,
            leaf.path,
            tuple(map(int, leaf.values.shape)),
            leaf.scale,
            tuple(Entry(i, Known(float(g), float(g))) for i, g in enumerate(part.ravel())),
        )
        for leaf, part in zip(point.leaves, parts, strict=True)
    )
    known = Known(value, value, 1e-14 * abs(value))
    return Reference(known, len(point.wrt), leaves, (), 0, "declared", "differences cannot know it", 1, point.constants)


def judge_operator(
    operator: str,
    result: Any,
    known: Reference | ArrayReference,
    seconds: Sequence[Reference] = (),
    v: Sequence[Any] = (),
    *,
    nonzeros: Nonzeros | None = None,
    claimed_relative_error: float | None = None,
) -> Verdict:
    """Compares what an operator returned with what is known.

    result    in numpy, of the structure that the operator promises
    seconds   for hvp the reference of H v; for hessian one for each of HESSIAN_DIRECTIONS
    v         for hessian: those directions
    nonzeros  the declared pattern of the Jacobian of a function whose value is an array
    """
    claim = claimed_relative_error
    if isinstance(known, ArrayReference):
        return judge_array_operator(
            operator, result, known, along, factor=COTANGENT, nonzeros=nonzeros, claimed_relative_error=claim
        )
    nothing = replace(known, count=0, leaves=(), directions=(), constants=())
    if result is None and operator in ("value", "jvp"):
        result = "nothing"  # for `judge`, None says that there was no value to give; here there was
    if operator == "value":
        return judge(result, (), nothing, claimed_relative_error=claim)
    if operator == "jvp":
        number = replace(nothing, value=along(known, 0))
        return _renamed(judge(result, (), number, claimed_relative_error=claim, value_from=_products(known)), "J v")
    if operator in ("gradient", "jacobian"):
        return judge(None, result, known, claimed_relative_error=claim)
    if operator == "vjp":
        return judge(None, scaled(result, 1 / COTANGENT), known, claimed_relative_error=claim)
    if operator == "value_and_gradient":
        if not isinstance(result, tuple) or len(result) != 2:
            return judge(None, result, replace(known, count=-1))
        return judge(result[0], result[1], known, claimed_relative_error=claim)
    if operator == "hvp":
        return judge(None, result, seconds[0], claimed_relative_error=claim)
    verdicts = [
        judge(None, _contracted(result, direction), second, claimed_relative_error=claim)
        for second, direction in zip(seconds, v, strict=True)
    ]
    return max(verdicts, key=lambda verdict: WORDS.index(verdict.word))


def is_known(second: Reference) -> bool:
    """Whether anything is known of second order: only high precision can tell."""
    return second.method == HIGH_PRECISION


def _contracted(hessian: Any, v: Any) -> Any:
    """H v: for every leaf of the arguments Σ over the leaves of v of its block times v's, nested like the arguments."""
    steps = [np.asarray(step, dtype=np.float64) for step in optree.tree_leaves(v)]

    def along_row(row: Any, like: Any) -> Any:
        blocks = [np.asarray(block) for block in optree.tree_leaves(row)]
        structure = optree.tree_structure(like)
        if len(blocks) != len(steps) * structure.num_leaves:
            return row  # misshapen; the verdict says so
        rows = [blocks[start : start + len(steps)] for start in range(0, len(blocks), len(steps))]
        sums = [sum(np.tensordot(b, s, axes=s.ndim) for b, s in zip(row, steps, strict=True)) for row in rows]
        return optree.tree_unflatten(structure, sums)

    if not isinstance(hessian, tuple) or len(hessian) != len(v):
        return hessian
    return tuple(along_row(row, like) for row, like in zip(hessian, v, strict=True))


def _products(known: Reference) -> float:
    """|g| |v|, of the entries known: where J v cancels, an error that is a share of the gradient is no fault of it."""
    longest = math.hypot(*(e.derivative.size for leaf in known.leaves for e in leaf.entries))
    length = math.sqrt(sum(leaf.size * leaf.scale**2 for leaf in known.leaves))
    return longest * length if math.isfinite(longest * length) else 0.0


def _renamed(verdict: Verdict, name: str) -> Verdict:
    """The same with the number called by its name instead of 'the value'."""
    value = None if verdict.value is None else replace(verdict.value, where=name)
    return replace(verdict, value=value, sentence=verdict.sentence.replace("the value", name))
