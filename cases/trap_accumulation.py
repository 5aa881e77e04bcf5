"""Traps in collecting adjoints: uses that must be added up, readings that must be counted, arrays that change later."""

import math

import numpy as np

from ._traps import assigned, traps

CASES, trap = traps("accumulation")

TWICE = np.array([0, 0, 2])
SAME = np.array([0, 0, 1])


@trap({"x": 0.7}, (1.4 + math.cos(0.7),))
def trap_accumulate(xp, x):
    """x² + sin x at 0.7 → 2x + cos x: x is used in two places, and the adjoints add up.

    An engine that assigns an adjoint where it should add keeps the last use only: cos x.
    """
    return x * x + xp.sin(x)


@trap({"x": 3.0}, (108.0,))
def trap_power_by_products(xp, x):
    """((x x) (x x)) at 3 → 4 x³ = 108: both factors of a product are the same variable.

    An engine that visits a shared node once for each path does exponential work; one that assigns gives 2 y x.
    """
    y = x * x
    return y * y


@trap({"x": [1.0, 2.0, 3.0]}, ([4.0, 0.0, 6.0],))
def trap_repeated_gather(xp, x):
    """Σ x[[0, 0, 2]]² at (1, 2, 3) → (4, 0, 6): an entry read twice counts twice.

    `adjoint[index] += g` in numpy adds once for a repeated index: 2 instead of 4 (HIPS/autograd#39).
    """
    return xp.sum(x[TWICE] ** 2)


@trap(
    {"x": [5.0, 6.0, 7.0]},
    ([0.0, 1.0, 0.0],),
    faults={"(1, 1, 0)": "what was overwritten gets a share all the same (as pytorch/pytorch#473)"},
)
def trap_repeated_scatter(xp, x):
    """y[[0, 0, 1]] = x, then y[0], at (5, 6, 7) → (0, 1, 0): of two writes to one place the last one counts.

    An adjoint gathered by the same index hands the overwritten x[0] a share it does not have: (1, 1, 0). torch calls
    it undefined (pytorch/pytorch#473, pytorch/pytorch#146299).
    """
    return assigned(xp.zeros_like(x[:2]), SAME, x)[0]


@trap(
    {"x": [1.0, 2.0]},
    ([3.0, 5.0],),
    faults={"0": "the array itself is kept, and was changed in place (as NVIDIA/warp#1350)"},
)
def trap_saved_by_reference(xp, x):
    """Σ x b, and then b is set to zero in place, at b = (3, 5) → (3, 5): the b that was multiplied by.

    A tape that keeps the array instead of its numbers reads the new ones: (0, 0) (NVIDIA/warp#1350). Libraries of
    immutable arrays bind a new b and are right; torch refuses where it would be wrong.
    """
    b = xp.asarray([3.0, 5.0])
    total = xp.sum(x * b)
    b *= 0.0
    return total


@trap({"x": [1.0, 2.0], "y": [3.0, 4.0]}, ([6.0, 6.0], [1.0, 1.0]))
def trap_shared_adjoint(xp, x, y):
    """Σ (x + y) + Σ 2x + Σ 3x at any point → 6 in x, 1 in y: the sum's adjoint goes to both and stays apart.

    An engine that hands one array to both arguments and adds to it in place gives y the adjoints of x: 6.
    """
    return xp.sum(x + y) + xp.sum(2.0 * x) + xp.sum(3.0 * x)


@trap({"x": [1.0, 1.0], "y": [2.0]}, ([2.0, 2.0], [2.0]))
def trap_einsum_broadcast(xp, x, y):
    """einsum('i,i', x, y) of lengths 2 and 1, at (1, 1) and (2) → (2, 2) and (2).

    The adjoint of x is an einsum of y alone, of y's length: shape (1,) instead of (2,) (HIPS/autograd#376).
    """
    return xp.einsum("i,i", x, y)


@trap({"x": [1.0, 2.0, 3.0]}, ([4.0, 4.0, 4.0],))
def trap_broadcast_to(xp, x):
    """Σ broadcast_to(x, (4, 3)) → 4 in every entry: each was read four times.

    An adjoint of the wide shape, or of one row, is what a missing rule leaves; HIPS/autograd#384 raised.
    """
    return xp.sum(xp.broadcast_to(x, (4, 3)))


@trap({"x": 2.0, "y": [1.0, 2.0, 3.0]}, (6.0, [2.0, 2.0, 2.0]))
def trap_scalar_times_array(xp, x, y):
    """Σ x y for a number x = 2 and y = (1, 2, 3) → Σ y = 6, a number, and (2, 2, 2).

    The adjoint of x comes out with y's shape where broadcasting is not undone (pytorch/pytorch#1787).
    """
    return xp.sum(x * y)


@trap({"x": 3.0}, (1.0,))
def trap_zero_trip_loop(xp, x):
    """x after no trips of a loop that squares → 1, for the identity.

    A loop whose adjoint is built from its last trip has none here: 0, or an error.
    """
    return xp.loop(lambda _, s: s * s, x, 0)


@trap({"x": 5.0}, (1.0,), prepared={"x": 1.5})
def trap_recorded_loop(xp, x):
    """y ← y² while y < 4, from x, prepared at 1.5 (two trips) and called at 5 (none) → 1.

    A recording replays the trips of the point it was made at: 4 x³ = 500 (two trips at 5).
    """
    y = x
    while y < 4.0:
        y = y * y
    return y


NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


@trap({"start": 0.3, "end": 1.1}, (-math.cos(0.45), math.cos(1.65)))
def trap_end_points(xp, start, end):
    """y' = cos 1.5 t from y(t0) = 0, as its quadrature, at t0 = 0.3, t1 = 1.1 → -cos 1.5 t0 and cos 1.5 t1.

    Gauss–Legendre with 16 nodes, whose places and widths depend on both ends. Where a solver holds its grid of times
    constant, the derivative in t0 is zero, or lacks its sign.
    """
    half, middle = 0.5 * (end - start), 0.5 * (end + start)
    return half * xp.sum(xp.asarray(WEIGHTS) * xp.cos(1.5 * (middle + half * xp.asarray(NODES))))
