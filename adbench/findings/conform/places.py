"""Points at which an operation is examined: special ones, random ones, and the whole range of exponents."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adbench.findings.operations.operation import ARGUMENTS, Domain, Operation

Floats = NDArray[np.float64]
LENGTHS = {"n": 3, "m": 2, "k": 2}
"""The lengths of named dimensions."""

EXPONENTS = (-309, -300, -200, -160, -150, -100, -50, -37, -30, -20, -16, -12, -8, -5, -3, -1)
LARGE_EXPONENTS = (1, 2, 3, 4, 5, 8, 12, 16, 20, 30, 37, 50, 100, 150, 160, 200, 300, 308)
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, 40.0, -40.0, 750.0, -750.0)
FEW = (0.0, 1.0, -1.0, 1.3, -0.7, 1.3e-8, 1.3e-20, 1.3e-160, -1.3e-300, 37.0, -45.0, 1.3e3, 1.3e20, 1.3e160, -1.3e300)
NEAR = (3, 6, 9, 12, 15)
"""Negative exponents of the distances to an edge."""

MOST_COMBINATIONS = 120
SCALES = (1e-300, 1e-160, 1e-20, 1e-8, 10.0, 50.0, 1e3, 1e20, 1e160, 1e300)
MODERATE = 1e8
FACTOR = 1.3


@dataclass(frozen=True)
class Place:
    """Arguments of an operation and the weights of its results, for Σ w f; no weights for a single number.

    kind   how it was chosen: "special", "random", "range" (of exponents), "shape"
    """

    arguments: tuple[Any, ...]
    weights: Floats | None
    kind: str

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the arguments."""
        return tuple(np.shape(argument) for argument in self.arguments)

    @property
    def inputs(self) -> dict[str, Any]:
        """The arguments and the weights by name."""
        named = dict(zip(ARGUMENTS, self.arguments, strict=False))
        return named if self.weights is None else {**named, "w": self.weights}

    @property
    def is_subnormal(self) -> bool:
        """Whether an argument has a nonzero number below the normal range."""
        numbers = np.concatenate([np.ravel(np.asarray(a, dtype=np.float64)) for a in self.arguments])
        return bool(((numbers != 0) & (np.abs(numbers) < np.finfo(np.float64).smallest_normal)).any())

    @property
    def in_single(self) -> Place | None:
        """The point rounded to float32; None if a number is beyond its normal range."""
        arrays = [np.asarray(argument, dtype=np.float64) for argument in self.arguments]
        sizes = np.concatenate([np.abs(array[array != 0]) for array in arrays])
        limits = np.finfo(np.float32)
        if sizes.size and (sizes.min() < limits.smallest_normal or sizes.max() > limits.max):
            return None
        rounded = [array.astype(np.float32).astype(np.float64) for array in arrays]
        return replace(self, arguments=tuple(array if array.ndim else float(array) for array in rounded))


def places(operation: Operation, seed: int = 0) -> Iterator[Place]:
    """All points of an operation; those of the same shapes follow each other."""
    rng = np.random.default_rng([seed, *operation.name.encode()])
    if not operation.is_elementwise:
        yield from _of_arrays(operation, rng)
        return
    for numbers, kind in _combinations(operation, rng):
        yield Place(numbers, None, kind)
    for shapes in _broadcast(operation.arity):
        yield _at_random(operation, rng, shapes)


def _broadcast(arity: int) -> list[tuple[tuple[int, ...], ...]]:
    """Shapes of elementwise arguments: an array, an empty array, arrays that broadcast."""
    if arity == 1:
        return [((2, 2),), ((0,),)]
    rest = ((),) * (arity - 2)
    return [((3, 1), (1, 2), *rest), ((3,), (), *rest), ((0,), (), *rest)]


def _combinations(operation: Operation, rng: np.random.Generator) -> list[tuple[tuple[float, ...], str]]:
    """Numbers for each argument: a long list for one argument, pairs of a short list for several."""
    if operation.arity == 1:
        (domain,) = operation.domain
        return [((x,), kind) for x, kind in numbers_of(domain, rng)]
    lists = [_few(domain, rng) for domain in operation.domain]
    every = list(itertools.product(*lists))
    if len(every) > MOST_COMBINATIONS:
        every = [every[k] for k in sorted(rng.choice(len(every), MOST_COMBINATIONS, replace=False))]
    ties = [(x,) * operation.arity for x in (1.0, 1.3, -0.7) if all(d.contains(x) for d in operation.domain)]
    drawn = [tuple(inside(domain, (), rng) for domain in operation.domain) for _ in range(6)]
    return [(one, "special") for one in ties] + [(one, "random") for one in drawn] + [(one, "range") for one in every]


def numbers_of(domain: Domain, rng: np.random.Generator) -> list[tuple[float, str]]:
    """Numbers of a domain with their kind, each once."""
    numbers = [(float(inside(domain, (), rng)), "random") for _ in range(6)]
    numbers += [(x, "special") for x in (*SPECIAL, *domain.special, *_edges(domain))]
    numbers += [(sign * FACTOR * 10.0**k, "range") for k in (*EXPONENTS, *LARGE_EXPONENTS) for sign in (1, -1)]
    kept = {(x, math.copysign(1.0, x)): (x, kind) for x, kind in reversed(numbers) if domain.contains(x)}
    return list(kept.values())[::-1]


def _edges(domain: Domain) -> list[float]:
    """The finite ends of a domain, and numbers near them."""
    edges = []
    for end, side in ((domain.lower, 1), (domain.upper, -1)):
        if math.isfinite(end):
            edges += [end, *(end + side * 10.0**-k for k in NEAR if end)]
    return edges


def _few(domain: Domain, rng: np.random.Generator) -> list[float]:
    """A short list of numbers for one of several arguments."""
    if not domain.active:
        return [*domain.special, float(inside(domain, (), rng))]
    return [x for x in dict.fromkeys((*FEW, *domain.special, *_edges(domain)[:3])) if domain.contains(x)]


def inside(domain: Domain, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    """Random numbers of ordinary size strictly inside a domain, with its structure."""
    lower, upper = domain.lower, domain.upper
    if math.isfinite(lower) and math.isfinite(upper):
        numbers = lower + (upper - lower) * rng.uniform(0.1, 0.9, shape)
    elif math.isfinite(lower):
        numbers = lower + rng.gamma(2.0, 0.7, shape) + 0.05
    elif math.isfinite(upper):
        numbers = upper - rng.gamma(2.0, 0.7, shape) - 0.05
    else:
        numbers = 1.2 * rng.standard_normal(shape)
    return structured(np.asarray(numbers, dtype=np.float64), domain) if shape else float(numbers)


def structured(array: Floats, domain: Domain) -> Floats:
    """The array with the structure that the domain asks for."""
    n = array.shape[-1] if array.ndim else 0
    match domain.kind:
        case "increasing":
            return np.sort(array, axis=-1)
        case "probabilities":
            return np.asarray(np.abs(array) / np.sum(np.abs(array), axis=-1, keepdims=True))
        case "symmetric":
            return np.asarray((array + np.swapaxes(array, -1, -2)) / 2)
        case "definite":
            return np.asarray(array @ np.swapaxes(array, -1, -2) + np.eye(n))
        case "triangular":
            return np.asarray(np.tril(array, -1) + np.eye(n) * (1.0 + np.abs(array)))
        case "invertible":
            return np.asarray(array + 3.0 * np.eye(n))
    return array


def _of_arrays(operation: Operation, rng: np.random.Generator) -> Iterator[Place]:
    shapes = _shapes(operation, LENGTHS)
    for _ in range(3):
        yield _at_random(operation, rng, shapes, "random")
    one_each = _weights(operation, shapes, rng)
    for arguments, kind in _patterns(operation, shapes, rng):
        yield Place(arguments, one_each, kind)
    if one_each is not None and one_each.size > 1:  # one result alone, which others would cover in a sum
        for arguments, kind in _patterns(operation, shapes, rng, most=MODERATE):
            alone = np.zeros(one_each.shape)
            alone.flat[int(rng.integers(alone.size))] = 1.0
            yield Place(arguments, alone, kind)
    if any(name in LENGTHS for dimensions in operation.inputs for name in dimensions):
        yield _at_random(operation, rng, _shapes(operation, dict.fromkeys(LENGTHS, 1)))
    if operation.batch:
        yield _at_random(operation, rng, tuple((2, *shape) for shape in shapes))


def _shapes(operation: Operation, lengths: dict[str, int]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(_length(name, lengths) for name in dimensions) for dimensions in operation.inputs)


def _length(name: str, lengths: dict[str, int]) -> int:
    return int(name) if name.isdigit() else lengths[name]


def output_shape(operation: Operation, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape of the result for arguments of these shapes, by the signature."""
    lengths: dict[str, int] = {}
    batches = []
    for dimensions, shape in zip(operation.inputs, shapes, strict=True):
        core = shape[len(shape) - len(dimensions) :]
        lengths.update(zip(dimensions, core, strict=True))
        batches.append(shape[: len(shape) - len(dimensions)])
    return np.broadcast_shapes(*batches) + tuple(_length(name, lengths) for name in operation.output)


def _weights(operation: Operation, shapes: Sequence[tuple[int, ...]], rng: np.random.Generator) -> Floats | None:
    shape = output_shape(operation, shapes)
    if not shape:
        return None
    return np.asarray(rng.choice([-1.0, 1.0], shape) * rng.choice([0.5, 0.625, 0.75, 0.875, 1.0], shape))


def _at_random(
    operation: Operation, rng: np.random.Generator, shapes: tuple[tuple[int, ...], ...], kind: str = "shape"
) -> Place:
    arguments = tuple(inside(domain, shape, rng) for domain, shape in zip(operation.domain, shapes, strict=True))
    return Place(arguments, _weights(operation, shapes, rng), kind)


def _patterns(
    operation: Operation, shapes: Sequence[tuple[int, ...]], rng: np.random.Generator, most: float = math.inf
) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Arguments of these shapes: zeros, ties, single zeros, and random numbers times powers of ten.

    A pattern applies to every active argument at once, then some apply to each of several alone. With ``most``, all
    numbers are at most this large, so that a result with weight zero does not overflow.
    """
    active = [k for k, domain in enumerate(operation.domain) if domain.active and shapes[k]]
    groups = [active] if len(active) == 1 or most < math.inf else [active, *([k] for k in active)]
    for group in groups:
        for number in range(_COUNT if len(group) == len(active) else _FIXED):
            arguments = [inside(domain, shape, rng) for domain, shape in zip(operation.domain, shapes, strict=True)]
            kind = "special"
            for k in group:
                changed, kind = _pattern(number, arguments[k], operation.domain[k], rng)
                arguments[k] = changed
            arrays = zip(map(np.asarray, arguments), operation.domain, strict=True)
            if all(_is_inside(a, d) and bool((np.abs(a) <= most).all()) for a, d in arrays):
                yield tuple(arguments), kind


def _is_inside(array: Floats, domain: Domain) -> bool:
    """Whether all numbers are inside, or on the edge; elsewhere a library may refuse what the definition computes."""
    if domain.kind == "definite" and np.linalg.eigvalsh(array + np.swapaxes(array, -1, -2)).min(initial=0.0) < 0.0:
        return False
    return bool(((array >= domain.lower) & (array <= domain.upper)).all())


_FIXED = 9
_COUNT = _FIXED + len(SCALES)


def _pattern(number: int, array: Floats, domain: Domain, rng: np.random.Generator) -> tuple[Any, str]:
    """One pattern applied to random numbers."""
    n = array.shape[-1] if array.ndim else 1
    is_matrix = array.ndim == 2 and array.shape[0] == n
    if number >= _FIXED:
        return array * SCALES[number - _FIXED], "range"
    first = array.copy()
    match number:
        case 0:
            return np.zeros(array.shape), "special"
        case 1:
            return np.eye(n) if is_matrix else np.ones(array.shape), "special"
        case 2:
            return np.full(array.shape, 0.75), "special"
        case 3:
            first.flat[0] = 0.0
            return first, "special"
        case 4:
            first.flat[: max(1, array.size - 1)] = 0.0
            return first, "special"
        case 5:
            first.flat[-1] = first.flat[0]
            return first, "special"
        case 6:
            if is_matrix:  # of rank one
                return structured(np.outer(array[0], array[0]), Domain()), "special"
            first.flat[0] = first.flat[-1] + 800.0
            return first, "special"
        case 7:
            if is_matrix:
                return np.diag([2.0] * (n - 1) + [3.0]), "special"
            first.flat[0] *= 1e-200
            return first, "range"
        case _:
            if is_matrix:
                return np.diag(10.0 ** np.linspace(-8, 8, n)) if n > 1 else array, "range"
            first.flat[0] *= 1e200
            return first, "range"
