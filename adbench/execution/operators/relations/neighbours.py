"""Inputs that differ in one entry from those of the case, and the right results there along one direction.

No reference is computed there. With g(t) = wᵀ f(y + t v), a random v and w, differences of the case on plain numpy give

    wᵀ f(y) = g(0),   wᵀ J v = g'(0),   vᵀ H v = g''(0)

from values around t = 0 and never at it: a case that keeps results has not seen those inputs before. Two step sizes
must agree, or nothing is decided. That is far less accurate than a reference, but enough to recognise the result of
other inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from time import perf_counter
from typing import Any

import numpy as np
import optree
from numpy.typing import NDArray

from adbench.execution.operators.prepared_point import CasePoint
from adbench.model import tree
from adbench.model.operator import Operator, definition
from adbench.oracle.differences import CENTRAL_WEIGHTS, SECOND_WEIGHTS
from adbench.oracle.operators import cotangent

Args = tuple[Any, ...]
FloatArray = NDArray[np.float64]
Change = Callable[[int, FloatArray], FloatArray]
"""change(number of the leaf, leaf) -> what is added to it."""

EVERY_ENTRY = 8
"""Of inputs with so few entries each is changed; of others `SAMPLED`: the last, the first and random ones."""
SAMPLED = 4
MOST_SECONDS = 0.05  # for the differences of one case, without its compilation

CHANGE = 2.0**-4  # of one entry, relative, towards zero: most domains contain the smaller number
LARGE_CHANGE = 2.0**-1  # of types below float64, whose rounding hides a smaller one
NUDGE = 2.0**-6  # of every entry, for a second look that meets no earlier inputs
STEP = 2.0**-8  # of t: a relative change of every active entry
AGREEMENT = 1e-5  # of the terms: how far a result may be from the differences
DECIDED = 1e-2  # of a derivative: how far its differences may be from each other

CENTRE_WEIGHTS = (56 / 70, -28 / 70, 8 / 70, -1 / 70)
"""g(0) ≈ Σ_k w_k (g(kh) + g(-kh)), exact for polynomials of degree 7."""


@dataclass(frozen=True)
class Neighbour:
    """Inputs, and g(0), g'(0), g''(0) there with their errors; NaN if undecided.

    what   the changed entry, such as x[3]
    """

    what: str
    args: Args
    derivatives: FloatArray
    errors: FloatArray

    def decides(self, operator: Operator) -> bool:
        """Whether the result of the operator is known here."""
        return bool(np.isfinite(self.derivatives[list(definition(operator).derivatives)]).all())


class Neighbours:
    """The neighbours of a point, whose active inputs are all floating-point."""

    def __init__(self, at: CasePoint, seconds: float = MOST_SECONDS) -> None:
        self.at, self._seconds = at, seconds
        rng = np.random.default_rng([at.seed, at.size, 0x1E])
        self.cotangent = cotangent(at.shape, at.seed)
        self.w = self.cotangent if at.shape else 1.0
        self.v = at.in_vector_type(tree.like(tuple(at.args[i] for i in at.wrt), lambda x: _direction(rng, x)))
        parts = iter(self.v)
        by_input = {i: next(parts) for i in at.wrt}
        self._v = [  # of each leaf of all inputs
            np.asarray(leaf) if i in by_input else np.zeros(np.shape(leaf))
            for i, arg in enumerate(at.args)
            for leaf in tree.leaves(by_input.get(i, arg))
        ]

    @cached_property
    def here(self) -> Neighbour:
        """The point itself."""
        return self._neighbour("", self.at.args)

    @cached_property
    def others(self) -> tuple[Neighbour, ...]:
        """The point with one entry changed; fewer of them if the case is slow."""
        neighbours, least = list[Neighbour](), 0.0
        for leaf, entry in self._places():
            if least * len(neighbours) > self._seconds:
                break
            begun = perf_counter()
            change = LARGE_CHANGE if self.at.types else CHANGE
            moved = self.at.in_types(self._stepped(self.at.args, _of_one(leaf, entry, change)))
            neighbours.append(self._neighbour(self._named(leaf, entry), moved))
            least = min(least or inf, perf_counter() - begun)
        return tuple(neighbours)

    def nudged(self, there: Neighbour) -> Neighbour:
        """A neighbour with every entry a little different."""
        rng = np.random.default_rng([self.at.seed, 0x2E])
        args = self._stepped(there.args, lambda _, x: NUDGE * rng.uniform(-1.0, -0.5, x.shape) * x)
        return self._neighbour(there.what, self.at.in_types(args))

    def args(self, operator: Operator, there: Neighbour) -> Args:
        """The arguments of a call there, in numpy."""
        vectors: Mapping[str | None, Args] = {"tangent": (self.v,), "cotangent": (self.cotangent,)}
        return (*there.args, *vectors.get(definition(operator).vector, ()))

    def disagreement(self, operator: Operator, result: Any, there: Neighbour, tolerance: float) -> str:
        """How a result, in numpy, differs from the differences there; "" if they agree."""
        for order, (got, size) in zip(definition(operator).derivatives, self._projected(operator, result), strict=True):
            expected, error = float(there.derivatives[order]), float(there.errors[order])
            if not abs(got - expected) <= max(tolerance, AGREEMENT) * size + error:
                return f"got {got:.9g} along a direction; differences of the function give {expected:.9g}"
        return ""

    def _projected(self, operator: Operator, result: Any) -> list[tuple[float, float]]:
        """A result's own g(0), g'(0) or g''(0), each with the size of its terms."""
        v, w = [np.ravel(leaf) for leaf in tree.leaves(self.v)], np.ravel(self.w)
        of = definition(operator)
        if of.result == "pair":
            return [_dot([result[0]], [w]), _dot(tree.leaves(result[1]), v)]
        if of.result == "value":
            return [_dot([result], [w])]
        if of.result == "jacobian":
            return [_dot(tree.leaves(result), [np.outer(w, part) for part in v])]
        if of.result == "hessian":
            return [_dot(tree.leaves(result), [np.outer(a, b) for a in v for b in v])]
        factor = self.cotangent if of.vector == "cotangent" and not self.at.shape else 1.0
        return [_dot(tree.leaves(result), [part / factor for part in v])]

    def _neighbour(self, what: str, args: Args) -> Neighbour:
        """These inputs with their differences."""

        def g(t: float) -> tuple[float, float]:
            moved = self._stepped(args, lambda leaf, x: np.multiply(t, self._v[leaf]))
            products = np.ravel(self.w) * np.ravel(self.at.plain(*moved))
            return float(products.sum()), float(np.abs(products).sum())

        try:
            with np.errstate(all="ignore"):
                curve = {t: g(t * STEP) for k in (0.5, 1.0, 1.5, 2.0, 3.0, 4.0) for t in (k, -k)}
        except Exception:  # outside the domain, where a function may raise anything
            return Neighbour(what, args, np.full(3, np.nan), np.full(3, np.nan))
        values, size = {t: value for t, (value, _) in curve.items()}, max(size for _, size in curve.values())
        coarse, fine = _derivatives(values, 1.0), _derivatives(values, 0.5)
        with np.errstate(all="ignore"):
            errors = 4 * np.abs(coarse - fine) + 2.0**-46 * size / (0.5 * STEP) ** np.arange(3)
            is_decided = errors <= DECIDED * np.maximum(np.abs(fine), AGREEMENT * size)
        return Neighbour(what, args, np.where(is_decided, fine, np.nan), errors)

    def _stepped(self, args: Args, change: Change) -> Args:
        """The inputs with a change of each floating-point leaf; a symmetric matrix stays one, because libraries may
        read one triangle or both."""
        leaves = tree.leaves(args)

        def stepped(number: int, leaf: Any) -> Any:
            if not tree.is_active(leaf):
                return leaf
            x = np.asarray(leaf, dtype=np.float64)
            moved = x + _alike(x, np.asarray(change(number, x)))
            moved = moved.astype(np.float32).astype(np.float64) if self.at.single else moved
            return moved if isinstance(leaf, np.ndarray) else float(moved)

        return tuple(tree.filled(args, [stepped(number, leaf) for number, leaf in enumerate(leaves)]))

    def _places(self) -> list[tuple[int, int]]:
        """(leaf, entry) of the entries to change."""
        leaves = tree.leaves(self.at.args)
        ends = np.cumsum([np.size(leaf) if tree.is_active(leaf) else 0 for leaf in leaves])
        count = int(ends[-1]) if leaves else 0
        between = [*range(1, count - 1)]
        if count > EVERY_ENTRY:
            between = np.random.default_rng([self.at.seed, 0x3E]).choice(between, SAMPLED - 2, replace=False).tolist()
        chosen = list(dict.fromkeys([count - 1, 0, *between])) if count else []
        places = [(int(np.searchsorted(ends, k, side="right")), k) for k in chosen]
        return [(leaf, k - int(ends[leaf - 1] if leaf else 0)) for leaf, k in places]

    def _named(self, leaf: int, entry: int) -> str:
        """x[3], or b[1, 2] of the second leaf of an input b."""
        counts = np.cumsum([len(tree.leaves(arg)) for arg in self.at.args])
        which = int(np.searchsorted(counts, leaf, side="right"))
        paths = optree.tree_paths(self.at.args[which], namespace=tree.NAMESPACE)
        steps = paths[leaf - int(counts[which - 1] if which else 0)]
        place = np.unravel_index(entry, np.shape(tree.leaves(self.at.args)[leaf]))
        ends = [*(f"[{step!r}]" for step in steps), *([f"[{', '.join(map(str, place))}]"] if place else [])]
        return f"{self.at.names[which]}{''.join(ends)}"


def _of_one(leaf: int, entry: int, size: float) -> Change:
    def change(number: int, x: FloatArray) -> FloatArray:
        step = np.zeros_like(x)
        if number == leaf:
            step.flat[entry] = -size * x.flat[entry] or size
        return step

    return change


def _direction(rng: np.random.Generator, x: FloatArray) -> FloatArray:
    """Every entry by about its own size, so that steps stay in most domains."""
    signs = rng.choice((-1.0, 1.0), x.shape)
    return _alike(x, signs * rng.uniform(0.5, 1.0, x.shape) * np.where(x == 0, 1.0, np.abs(x)))


def _alike(x: FloatArray, step: FloatArray) -> FloatArray:
    """The step, made symmetric if x is."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2] or not np.array_equal(x, np.swapaxes(x, -1, -2)):
        return step
    return (step + np.swapaxes(step, -1, -2)) / 2


def _derivatives(values: Mapping[float, float], step: float) -> FloatArray:
    """g(0), g'(0), g''(0) from values at multiples of the step, in units of STEP."""
    sums, differences = ([values[k * step] + s * values[-k * step] for k in (1, 2, 3, 4)] for s in (1, -1))
    h = step * STEP
    centre = float(np.dot(CENTRE_WEIGHTS, sums))
    slope = float(np.dot(CENTRAL_WEIGHTS, differences))
    bend = float(np.dot(SECOND_WEIGHTS, np.array(sums) - 2 * centre))
    return np.array([centre, slope / h, bend / h**2])


def _dot(parts: Sequence[Any], weights: Sequence[FloatArray]) -> tuple[float, float]:
    """The sum of the products, and of their sizes."""
    terms = [np.ravel(tree.dense(part)) * np.ravel(own) for part, own in zip(parts, weights, strict=True)]
    return float(sum(part.sum() for part in terms)), float(sum(np.abs(part).sum() for part in terms))
