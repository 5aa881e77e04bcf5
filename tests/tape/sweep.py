"""Judge all compositions of first and second derivatives at one point by one-sided limits of high precision.

A program is judged along a direction v, as g(t) = f(x + t v). The one-sided limits of g' and g'' show whether f has a
derivative. The rules of the verdict:

    both sides agree            the engine gives that number
    the sides differ: a kink    a number between the two, by convention, or NaN
    they are infinite           that infinity, or NaN
    one side has no values      the other side's limit, or NaN
    neither side has values     any result except one of Python's own exceptions

If the tested function is not smooth at the point, NaN is honest too, because the engine knows only its parts. It counts
as `unknown`, separately from right results.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import mpmath
import numpy as np

from adbench import tape

from .limits import one_sided

REFUSALS = (tape.TapeError, np.linalg.LinAlgError, tape.DomainError)
HUGE, TINY = 1.7e308, 1e-290


def _along(v, g):
    """Σ v g over the elements where v is not 0; g may be infinite elsewhere."""
    return tape.sum(v * tape.where(v != 0.0, g, 0.0))


def compositions(f, v):
    """Name -> a function of x that computes D_v f (order 1) or vᵀHv (order 2), for each way to compute it."""

    def forward(g):
        return lambda p: tape.jvp(g, p, v)[1]

    def reverse(g):
        return lambda p: _along(v, tape.gradient(g, p)[1])

    return {
        "forward": (1, forward(f)),
        "reverse": (1, reverse(f)),
        "forward∘forward": (2, forward(forward(f))),
        "forward∘reverse": (2, forward(reverse(f))),
        "reverse∘forward": (2, reverse(forward(f))),
        "reverse∘reverse": (2, reverse(reverse(f))),
    }


def compiled(f, x, v):
    """The same in machine code: the compiler's operators, and compositions inside a program."""

    def second(p):
        return _along(v, tape.gradient(f, p)[1])

    return {
        "compiled gradient": (1, lambda p: _along(v, tape.compile(f, x, operator="gradient")(p))),
        "compiled jvp": (1, lambda p: tape.compile(f, x, v, operator="jvp")(p, v)[1]),
        "compiled hvp": (2, lambda p: _along(v, tape.compile(f, x, v, operator="hvp")(p, v)[1])),
        "compiled reverse∘reverse": (2, lambda p: _along(v, tape.compile(second, x, operator="gradient")(p))),
    }


@dataclass(frozen=True)
class Sides:
    """The truth about g: (g', g'') from the left and the right (None for no values), and the size of g."""

    left: tuple | None
    right: tuple | None
    value: float
    scale: float

    def of(self, order):
        """The existing one-sided limits of the derivative of this order."""
        return [side[order - 1] for side in (self.left, self.right) if side is not None]

    def is_smooth(self):
        """Whether both derivatives exist on both sides, are equal, and fit into a float."""
        if self.left is None or self.right is None:
            return False
        return all(abs(a) < HUGE and _near(a, b, 0) for a, b in zip(self.left, self.right, strict=True))


def _near(a, b, slack):
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b)) + slack


def truth(exact, x, v):
    """The sides of g(t) = exact(x + t v)."""
    x, v = np.asarray(x, float), np.asarray(v, float)
    scale = min([*np.abs(x[x != 0.0]).ravel(), 1.0]) if x.shape else min(abs(float(x)) or 1.0, 1.0)
    largest = max([*np.abs(x).ravel(), 1.0])
    scale /= largest
    digits = int(190 + 2.2 * (math.log10(largest) - math.log10(scale)))
    with mpmath.workdps(digits):
        start = np.vectorize(mpmath.mpf, otypes=[object])(x)
        step = np.vectorize(mpmath.mpf, otypes=[object])(v)

        def g(t):
            return exact((start + step * t)[()] if x.shape else start[()] + step[()] * t)

        left, right = one_sided(g, -1, scale, largest), one_sided(g, 1, scale, largest)
        try:
            value = float(g(0))
        except (ArithmeticError, ValueError, TypeError):
            value = math.nan
        return Sides(left, right, value, scale * largest)


def verdict(got, order, sides, honest):
    """ "right", "unknown" (an honest NaN), or a description of the fault."""
    limits = sides.of(order)
    if isinstance(got, Exception):
        return "unknown" if honest and isinstance(got, REFUSALS) else f"{type(got).__name__}: {got}"
    if not limits or not math.isfinite(sides.value):
        return "right"
    if math.isnan(got) and max(map(abs, limits)) < HUGE:
        return "unknown" if honest else f"NaN, expected {mpmath.nstr(limits[0], 17)}"
    low, high = min(limits), max(limits)
    if order == 2 and sides.left and sides.right and not _near(sides.left[0], sides.right[0], 0):
        low, high = min(low, 0), max(high, 0)  # the slope jumps, and its convention between the two is constant
    slack = mpmath.mpf(1e-13) * abs(sides.value) / mpmath.mpf(sides.scale) ** order + TINY
    if low - slack - 1e-9 * abs(low) <= got <= high + slack + 1e-9 * abs(high):
        return "right"
    if not math.isfinite(got) and max(abs(low), abs(high)) > HUGE:
        return "right"
    if honest and order == 2 and math.isinf(got):
        return "unknown"
    return f"{got!r}, expected {mpmath.nstr(low, 17)}" + ("" if low == high else f" to {mpmath.nstr(high, 17)}")


def faults(f, exact, x, v, *, honest=None, machine=False):
    """({composition: fault}, counts) of a program at a point; `honest` is whether NaN is honest there."""
    sides = truth(exact, x, v)
    honest = not sides.is_smooth() if honest is None else honest
    x, v = (np.asarray(a, float) if np.shape(a) else float(a) for a in (x, v))
    found, counts = {}, {"right": 0, "unknown": 0}
    ways = compositions(f, v) | (compiled(f, x, v) if machine else {})
    for name, (order, derivative) in ways.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                got = float(np.asarray(derivative(x)))
            except Exception as error:  # judged like a result
                got = error
        answer = verdict(got, order, sides, honest)
        if answer in counts:
            counts[answer] += 1
        else:
            found[name] = answer
    return found, counts
