"""The noise of a derivative in double precision, measured by an engine that is handed in.

The protocol. A `Noise` is called as

    noise(xp_function, args, wrt, draws, seed) -> [(value, gradient), ...]

with the text ``xp_function(xp, *args)`` (the engine brings its own xp), the arguments as floats, float64 arrays and
nests of these, the indices ``wrt`` of the active ones. It answers draws + 1 results, each a float and a tuple shaped
like ``judge`` expects one: first the plain run, then ``draws`` runs in Monte Carlo arithmetic: every operation, every
adjoint operation and the inside of every derivative formula times 1 + u ξ with u = 2^-53 and ξ uniform in [-1, 1],
drawn with ``seed``. Per entry then

    noise = max(standard deviation of the draws, |plain - mean of the draws| / 3)

It may raise anything; the noise is then estimated from the text itself, and the reference says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adbench.oracle.leaves import direction_signs
from adbench.oracle.reference import Direction, Entry, Known, Leaf, Reference
from adbench.oracle.structure import gradient_arrays, single_number

Sample = tuple[Any, Any]
Noise = Callable[[Callable[..., Any], tuple[Any, ...], tuple[int, ...], int, int], Sequence[Sample]]

DRAWS = 12


def with_noise(reference: Reference, samples: Sequence[Sample]) -> Reference:
    """The reference with the noise that plain and perturbed runs show: for the value, the entries, the directions."""
    if len(samples) < 3:
        raise ValueError(f"noise needs the plain run and two draws at least, there are {len(samples)} runs")
    values = np.array([single_number(value) for value, _ in samples])
    runs = [gradient_arrays(gradient, reference) for _, gradient in samples]
    leaves = tuple(_noisy_leaf(leaf, [arrays[k] for arrays in runs]) for k, leaf in enumerate(reference.leaves))
    directions = tuple(_noisy_direction(direction, runs, reference) for direction in reference.directions)
    return replace(reference, value=_noisy(reference.value, values), leaves=leaves, directions=directions)


def _noisy_leaf(leaf: Leaf, runs: Sequence[NDArray[np.float64]]) -> Leaf:
    return replace(
        leaf,
        entries=tuple(
            Entry(entry.index, _noisy(entry.derivative, np.array([run.flat[entry.index] for run in runs])))
            for entry in leaf.entries
        ),
    )


def _noisy_direction(
    direction: Direction, runs: Sequence[Sequence[NDArray[np.float64]]], reference: Reference
) -> Direction:
    signs = direction_signs(reference.seed, direction.number, [leaf.shape for leaf in reference.leaves])
    sums = [
        math.fsum(
            float(np.sum(sign * leaf.scale * array))
            for sign, leaf, array in zip(signs, reference.leaves, run, strict=True)
        )
        for run in runs
    ]
    return replace(direction, derivative=_noisy(direction.derivative, np.array(sums)))


def _noisy(known: Known, runs: NDArray[np.float64]) -> Known:
    """``runs``: the plain one first."""
    if not np.isfinite(runs).all():
        return replace(known, noise=math.inf)
    plain, draws = runs[0], runs[1:]
    spread = float(np.std(draws, ddof=1))
    return replace(known, noise=max(spread, abs(float(plain - np.mean(draws))) / 3))
