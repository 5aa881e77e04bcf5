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
from functools import cached_property, partial
from math import inf
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adbench.execution.operators.prepared_point import CasePoint, rounded_to
from adbench.model import tree
from adbench.model.operator import Operator, definition
from adbench.oracle.differences import CENTRAL_WEIGHTS, SECOND_WEIGHTS
from adbench.oracle.evidence import DOUBLE, SINGLE, entry_name
from adbench.oracle.leaves import Point, is_symmetric
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

    @cached_property
    def here(self) -> Neighbour:
        """The point itself."""
        return self._neighbour("", self.at.args)

    @cached_property
    def others(self) -> tuple[Neighbour, ...]:
        """The point with one entry changed; fewer of them if the case is slow."""
        neighbours, least = list[Neighbour](), 0.0
        leaves = self._floats(self.at.args).leaves
        for number, entry in self._places([leaf.values.size for leaf in leaves]):
            if least * len(neighbours) > self._seconds:
                break
            begun = perf_counter()
            size = LARGE_CHANGE if self.at.types else CHANGE
            moved = self._stepped(self.at.args, partial(_of_one, number, entry, size))
            leaf = leaves[number]
            neighbours.append(self._neighbour(entry_name(leaf.path, entry, leaf.values.shape), moved))
            least = min(least or inf, perf_counter() - begun)
        return tuple(neighbours)

    def nudged(self, there: Neighbour) -> Neighbour:
        """A neighbour with every entry a little different."""
        rng = np.random.default_rng([self.at.seed, 0x2E])
        moved = self._stepped(there.args, lambda _, x: NUDGE * rng.uniform(-1.0, -0.5, x.shape) * x)
        return self._neighbour(there.what, moved)

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
        point, v = Point(args, self.at.wrt, self.at.names), [np.asarray(leaf) for leaf in tree.leaves(self.v)]

        def g(t: float) -> tuple[float, float]:
            products = np.ravel(self.w) * np.ravel(self.at.plain(*point.moved([t * leaf for leaf in v])))
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

    def _floats(self, args: Args) -> Point:
        """The inputs for the oracle, all floating-point leaves active."""
        which = [k for k, arg in enumerate(args) if any(map(tree.is_active, tree.leaves(arg)))]
        return Point(args, which, self.at.names)

    def _stepped(self, args: Args, change: Change) -> Args:
        """The inputs with a change of each floating-point leaf, in their types; a symmetric matrix stays one, because
        libraries may read one triangle or both."""
        point = self._floats(args)
        moved = point.moved([_alike(leaf.values, change(k, leaf.values)) for k, leaf in enumerate(point.leaves)])
        return self.at.in_types(tuple(rounded_to(SINGLE if self.at.single else DOUBLE, arg) for arg in moved))

    def _places(self, sizes: Sequence[int]) -> list[tuple[int, int]]:
        """(leaf, entry) of the entries to change."""
        starts = np.cumsum([0, *sizes])
        count = int(starts[-1])
        between = [*range(1, count - 1)]
        if count > EVERY_ENTRY:
            between = np.random.default_rng([self.at.seed, 0x3E]).choice(between, SAMPLED - 2, replace=False).tolist()
        chosen = list(dict.fromkeys([count - 1, 0, *between])) if count else []
        leaves = [int(np.searchsorted(starts, k, side="right")) - 1 for k in chosen]
        return [(leaf, k - int(starts[leaf])) for leaf, k in zip(leaves, chosen, strict=True)]


def _of_one(leaf: int, entry: int, size: float, number: int, x: FloatArray) -> FloatArray:
    """A change of one entry of one leaf."""
    step = np.zeros_like(x)
    if number == leaf:
        step.flat[entry] = -size * x.flat[entry] or size
    return step


def _direction(rng: np.random.Generator, x: FloatArray) -> FloatArray:
    """Every entry by about its own size, so that steps stay in most domains."""
    signs = rng.choice((-1.0, 1.0), x.shape)
    return _alike(x, signs * rng.uniform(0.5, 1.0, x.shape) * np.where(x == 0, 1.0, np.abs(x)))


def _alike(x: FloatArray, step: FloatArray) -> FloatArray:
    """The step, made symmetric if x is."""
    return (step + np.matrix_transpose(step)) / 2 if is_symmetric(x) else step


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
