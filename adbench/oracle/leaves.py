"""The active numbers of a function's arguments: their places, their names, and how to move them.

An argument is a float, an array or a nested dict, list or tuple of these. Its *leaves* are the arrays and floats
inside; a leaf has a path as a string (``params[0]['w']``), a shape and a flat index for every entry.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
import optree
from numpy.typing import NDArray

from adbench.oracle.evidence import within
from adbench.oracle.reference import Direction, Known, Leaf, PartialDerivative, Row

FloatArray = NDArray[np.float64]

DIRECTION = 0
"""The number of the direction v of H v."""


@dataclass(frozen=True)
class ActiveLeaf:
    """One active array: ``wrt[position]`` at ``keys``, its values as float64 and its name in messages."""

    position: int
    keys: tuple[int | str, ...]
    path: str
    values: FloatArray

    @property
    def scale(self) -> float:
        """The power of two nearest to the median of nonzero |values|; 1 if all are zero."""
        sizes = np.abs(self.values[np.isfinite(self.values) & (self.values != 0)])
        return power_of_two(float(np.median(sizes))) if sizes.size else 1.0


def power_of_two(size: float) -> float:
    """The power of two at or below ``size``, limited to 2^-300 .. 2^300 so that products stay finite."""
    return math.ldexp(1.0, max(-300, min(300, math.frexp(size)[1] - 1)))


class Point:
    """Arguments, some of them active: ``leaves`` are the active ones, ``moved`` returns the arguments at another
    point."""

    def __init__(self, args: tuple[Any, ...], wrt: Sequence[int], names: Sequence[str]) -> None:
        self.args, self.wrt = args, tuple(wrt)
        leaves: list[ActiveLeaf] = []
        constants: list[tuple[int | str, ...]] = []
        self._slots: list[tuple[int, int]] = []
        self._trees: dict[int, tuple[list[Any], Any]] = {}
        for position, which in enumerate(self.wrt):
            nodes, tree = optree.tree_flatten(args[which], namespace="")
            self._trees[which] = (list(nodes), tree)
            accessors = optree.tree_accessors(args[which])
            for slot, (leaf, accessor) in enumerate(zip(nodes, accessors, strict=True)):
                if _is_active(leaf, alone=len(accessor) == 0):
                    keys = tuple(accessor.path)
                    values = np.array(leaf, dtype=np.float64)
                    leaves.append(ActiveLeaf(position, keys, accessor.codify(names[which]), values))
                    self._slots.append((which, slot))
                else:
                    constants.append((position, *accessor.path))
        self.leaves, self.constants = tuple(leaves), tuple(constants)

    @property
    def sizes(self) -> list[int]:
        """The number of entries of each active leaf."""
        return [leaf.values.size for leaf in self.leaves]

    def steps(self, seed: int, number: int) -> list[FloatArray]:
        """The direction v with this number, one array for each active leaf: weights times the leaf's scale."""
        weights = direction_weights(seed, number, [leaf.values.shape for leaf in self.leaves])
        return [leaf.scale * weight for leaf, weight in zip(self.leaves, weights, strict=True)]

    def unit(self, leaf: int, index: int) -> list[FloatArray]:
        """The direction that moves one entry by 1."""
        direction = [np.zeros(one.values.shape) for one in self.leaves]
        direction[leaf].flat[index] = 1.0
        return direction

    def step(self, seed: int, leaf: int, index: int) -> tuple[list[FloatArray], float]:
        """The direction of one entry, or for leaf -1 the direction of this number; and the size of the moved number."""
        if leaf < 0:
            return self.steps(seed, index), 1.0
        return self.unit(leaf, index), abs(float(self.leaves[leaf].values.flat[index]))

    def direction(self, seed: int, number: int) -> tuple[Any, ...]:
        """The direction v with this number, nested like the active arguments."""
        moved = self.replaced([step if step.ndim else float(step) for step in self.steps(seed, number)])
        return tuple(moved[position] for position in self.wrt)

    def row(self, seed: int, value: Known, chosen: Sequence[Sequence[int]], derivatives: Iterable[Known]) -> Row:
        """A row of the derivatives in the chosen entries, leaf by leaf, then along directions; without a method."""
        following = iter(derivatives)
        leaves = tuple(
            Leaf(
                leaf.position,
                leaf.keys,
                leaf.path,
                tuple(map(int, leaf.values.shape)),
                leaf.scale,
                tuple(PartialDerivative(index, next(following)) for index in indices),
            )
            for leaf, indices in zip(self.leaves, chosen, strict=True)
        )
        directions = tuple(Direction(number, derivative) for number, derivative in enumerate(following))
        return Row(value, len(self.wrt), leaves, directions, seed, "", "", 0, self.constants)

    def replaced(self, arrays: Sequence[Any], others: Callable[[Any], Any] = lambda leaf: leaf) -> tuple[Any, ...]:
        """The arguments with the active leaves replaced by ``arrays``, and ``others`` applied to every other leaf."""
        new = {
            which: [None if (which, slot) in self._slots else others(leaf) for slot, leaf in enumerate(nodes)]
            for which, (nodes, _) in self._trees.items()
        }
        for (which, slot), array in zip(self._slots, arrays, strict=True):
            new[which][slot] = array
        return tuple(
            optree.tree_unflatten(self._trees[which][1], new[which])
            if which in new
            else optree.tree_map(others, argument)
            for which, argument in enumerate(self.args)
        )

    def moved(self, offsets: Sequence[FloatArray | None]) -> tuple[Any, ...]:
        """The arguments with ``offsets[k]`` added to leaf k (None: not moved); floats stay floats."""
        arrays: list[Any] = []
        for (which, slot), leaf, offset in zip(self._slots, self.leaves, offsets, strict=True):
            values = leaf.values.copy() if offset is None else leaf.values + offset
            is_array = isinstance(self._trees[which][0][slot], np.ndarray)
            arrays.append(values if is_array else float(values))
        return self.replaced(arrays, _fresh)


def _fresh(leaf: Any) -> Any:
    # A function that writes into its inputs must not spoil the next evaluation.
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


def _is_active(leaf: Any, *, alone: bool) -> bool:
    """Floats are active; integers only as a whole argument (users write x^2 at 100)."""
    if isinstance(leaf, bool):
        return False
    if isinstance(leaf, int):
        return alone
    kind = np.asarray(leaf).dtype.kind
    return kind == "f" or (kind in "iu" and alone)


def is_symmetric(values: FloatArray) -> bool:
    """Whether an array (…, n, n) is exactly symmetric, and not only a number."""
    square = values.ndim >= 2 and values.shape[-1] == values.shape[-2] > 1
    return square and np.array_equal(values, np.matrix_transpose(values))


WEIGHT_BITS = 11
_BITS: ContextVar[int] = ContextVar("bits", default=WEIGHT_BITS)
LEAST_WEIGHT = 0.5
"""The magnitude of the smallest weight."""


def direction_weights(seed: int, number: int, shapes: Sequence[tuple[int, ...]]) -> list[FloatArray]:
    """Random weights, one array per leaf: the direction is weights times the leaf's scale."""
    rng = np.random.default_rng([seed, number])
    return [random_weights(rng, shape) for shape in shapes]


def output_weights(seed: int, number: int, shape: tuple[int, ...]) -> FloatArray:
    """Random weights for the outputs of a function; 1 for a scalar."""
    if not shape:
        return np.ones(())
    return random_weights(np.random.default_rng([seed, number, 0x0F]), shape)


def weights_of(bits: int) -> AbstractContextManager[int]:
    """In the block, random weights are numbers of a type whose significand has so many bits."""
    return within(_BITS, min(bits, WEIGHT_BITS))


def random_weights(rng: np.random.Generator, shape: tuple[int, ...], bits: int | None = None) -> FloatArray:
    """Random signs times random odd multiples of 2^-bits between 1/2 and 1; by default of the bits of `weights_of`.

    They differ, so that exchanged numbers change a sum. They have few bits, so that `weighted_sum` is exact. Their
    signs are random, so that errors add up like the steps of a random walk.
    """
    bits = bits or _BITS.get()
    most = 1 << bits
    signs = 2.0 * rng.integers(0, 2, size=shape) - 1.0
    return np.asarray(signs * (2.0 * rng.integers(most // 4, most // 2, size=shape) + 1.0) / most, dtype=np.float64)


def weighted_sum(numbers: FloatArray, weights: FloatArray) -> float:
    """Σ numbers · weights, rounded once. Infinite if it overflows, NaN if a number is not finite."""
    return float(weighted_sums(np.reshape(numbers, (1, -1)), weights)[0])


def weighted_sums(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Σ row · weights for every row of a matrix, rounded once. Infinite if it overflows, NaN if not all are finite."""
    products, shift = exact_products(rows, weights.ravel())
    totals = [total(row) for row in np.concatenate(products, axis=1).tolist()]
    with np.errstate(over="ignore"):
        return np.ldexp(totals, shift)


def total(numbers: Sequence[float]) -> float:
    """`math.fsum`, but NaN for infinities of both signs."""
    try:
        return math.fsum(numbers)
    except ValueError:
        return math.nan


def exact_products(numbers: FloatArray, weights: FloatArray) -> tuple[tuple[FloatArray, FloatArray], int]:
    """Two arrays of exact products with the halves of the numbers, and how often both must be doubled.

    The weights have at most 26 bits, like ours times powers of two. The numbers are scaled down if a product, or the
    sum of all, overflows.
    """
    largest = [math.frexp(float(np.max(np.abs(part), initial=0.0)))[1] for part in (numbers, weights)]
    shift = max(0, sum(largest) - 900)
    scaled = np.ascontiguousarray(np.ldexp(numbers, -shift) if shift else numbers, dtype=np.float64)
    upper = (scaled.view(np.int64) & ~((1 << 27) - 1)).view(np.float64)
    return (upper * weights, (scaled - upper) * weights), shift
