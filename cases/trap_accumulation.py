"""Traps in accumulating adjoints: several uses of a variable, repeated indices, arrays that change later."""

import math

import numpy as np

from ._traps import assigned, traps

CASES, trap = traps("accumulation")

TWICE = np.array([0, 0, 2])
SAME = np.array([0, 0, 1])


@trap({"x": 0.7}, (1.4 + math.cos(0.7),))
def trap_accumulate(xp, x):
    """x² + sin x at 0.7 → 2x + cos x: x is used twice, and the adjoints add up.

    An engine that assigns adjoints instead of adding keeps the last use only: cos x.
    """
    return x * x + xp.sin(x)


@trap({"x": 3.0}, (108.0,))
def trap_power_by_products(xp, x):
    """((x x) (x x)) at 3 → 4 x³ = 108: both factors of a product are the same variable.

    An engine that visits a shared node once per path does exponential work; one that assigns gives 2 y x.
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
    faults={"(1, 1, 0)": "the overwritten entry still gets a gradient (as pytorch/pytorch#473)"},
)
def trap_repeated_scatter(xp, x):
    """y[[0, 0, 1]] = x, then y[0], at (5, 6, 7) → (0, 1, 0): the last write to an entry counts.

    An adjoint gathered by the same index also gives the overwritten x[0] a gradient: (1, 1, 0). torch calls it
    undefined (pytorch/pytorch#473, pytorch/pytorch#146299).
    """
    return assigned(xp.zeros_like(x[:2]), SAME, x)[0]


@trap(
    {"x": [1.0, 2.0]},
    ([3.0, 5.0],),
    faults={"0": "the tape keeps the array, which was changed in place (as NVIDIA/warp#1350)"},
)
def trap_saved_by_reference(xp, x):
    """Σ x b at b = (3, 5), with b set to zero in place afterwards → (3, 5): b at the time of the product.

    A tape that keeps a reference to the array reads the new numbers: (0, 0) (NVIDIA/warp#1350). Libraries with
    immutable arrays bind a new b and are correct; torch raises an error instead.
    """
    b = xp.asarray([3.0, 5.0])
    total = xp.sum(x * b)
    b *= 0.0
    return total


@trap({"x": [1.0, 2.0], "y": [3.0, 4.0]}, ([6.0, 6.0], [1.0, 1.0]))
def trap_shared_adjoint(xp, x, y):
    """Σ (x + y) + Σ 2x + Σ 3x at any point → 6 in x, 1 in y: the sum's adjoint goes to both separately.

    An engine that gives both arguments the same array and adds to it in place gives y the adjoint of x: 6.
    """
    return xp.sum(x + y) + xp.sum(2.0 * x) + xp.sum(3.0 * x)


@trap({"x": [1.0, 1.0], "y": [2.0]}, ([2.0, 2.0], [2.0]))
def trap_einsum_broadcast(xp, x, y):
    """einsum('i,i', x, y) of lengths 2 and 1, at (1, 1) and (2) → (2, 2) and (2).

    As an einsum of y alone, the adjoint of x has shape (1,) instead of (2,) (HIPS/autograd#376).
    """
    return xp.einsum("i,i", x, y)


@trap({"x": [1.0, 2.0, 3.0]}, ([4.0, 4.0, 4.0],))
def trap_broadcast_to(xp, x):
    """Σ broadcast_to(x, (4, 3)) → 4 in every entry: each is read four times.

    Without a rule, the adjoint has the wide shape or one row; HIPS/autograd#384 raised an error.
    """
    return xp.sum(xp.broadcast_to(x, (4, 3)))


@trap({"x": 2.0, "y": [1.0, 2.0, 3.0]}, (6.0, [2.0, 2.0, 2.0]))
def trap_scalar_times_array(xp, x, y):
    """Σ x y for a number x = 2 and y = (1, 2, 3) → Σ y = 6, a number, and (2, 2, 2).

    If broadcasting is not undone, the adjoint of x has y's shape (pytorch/pytorch#1787).
    """
    return xp.sum(x * y)


@trap({"x": 3.0}, (1.0,))
def trap_zero_trip_loop(xp, x):
    """x after zero iterations of a loop that squares → 1: this is the identity.

    A loop whose adjoint starts from its last iteration has none here: 0, or an error.
    """
    return xp.loop(lambda _, s: s * s, x, 0)


@trap({"x": 5.0}, (1.0,), prepared={"x": 1.5})
def trap_recorded_loop(xp, x):
    """y ← y² while y < 4, from x, prepared at 1.5 (two iterations) and called at 5 (none) → 1.

    A recording repeats the two iterations of the point 1.5: 4 x³ = 500 at 5.
    """
    y = x
    while y < 4.0:
        y = y * y
    return y


NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


@trap({"start": 0.3, "end": 1.1}, (-math.cos(0.45), math.cos(1.65)))
def trap_end_points(xp, start, end):
    """y' = cos 1.5 t from y(t0) = 0, as its quadrature, at t0 = 0.3, t1 = 1.1 → -cos 1.5 t0 and cos 1.5 t1.

    Gauss–Legendre with 16 nodes; positions and widths depend on both ends. If a solver holds its time grid constant,
    the derivative in t0 is zero or has the wrong sign.
    """
    half, middle = 0.5 * (end - start), 0.5 * (end + start)
    return half * xp.sum(xp.asarray(WEIGHTS) * xp.cos(1.5 * (middle + half * xp.asarray(NODES))))
