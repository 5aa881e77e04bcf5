"""Programs whose branches hide the derivative: their values are smooth to rounding, their steps are constants."""

import autograd.numpy as anp
import jax
import jax.numpy as jnp
import numpy as np
import torch
from mpmath import mp

from tests.functions.campaign.row import right, rows, wrong
from tests.functions.campaign.truth import D
from tests.functions.campaign.wrapped import autograd_rule, jax_vjp, torch_old


def cube_root_in_jax(y):
    def step(_, ends):
        low, high = ends
        middle = (low + high) / 2
        return jnp.where(middle**3 < y, middle, low), jnp.where(middle**3 < y, high, middle)

    return jax.lax.fori_loop(0, 58, step, (0.0, 4.0))[0]


def golden_section(a):
    """The place of the minimum of x exp(x) - a x, to half of the digits."""
    ratio = (np.sqrt(5.0) - 1) / 2

    def value(x):
        return x * jnp.exp(x) - a * x

    def step(_, ends):
        low, high = ends
        c, d = high - ratio * (high - low), low + ratio * (high - low)
        left = value(c) < value(d)
        return jnp.where(left, low, c), jnp.where(left, d, high)

    return jax.lax.fori_loop(0, 36, step, (-0.5, 2.0))[0]


def smallest(a):
    return mp.findroot(lambda x: (1 + x) * mp.exp(x) - a, 0.5)


def logarithm_by_digits(x):
    """log2 of a number in [1, 2), bit by bit."""
    total = torch.zeros_like(x)
    for k in range(1, 50):
        x = x * x
        total = torch.where(x >= 2, total + 2.0**-k, total)
        x = torch.where(x >= 2, x / 2, x)
    return total


def cordic(y, x):
    """The angle of a point by rotations."""
    angle = 0.0
    for k in range(52):
        turn = 1.0 if y > 0 else -1.0
        x, y = x + turn * y * 2.0**-k, y - turn * x * 2.0**-k
        angle = angle + turn * np.arctan(2.0**-k)
    return angle


def root_by_digits(y):
    """The square root of a number below 4, bit by bit."""
    root = 0.0
    for k in range(52):
        root = anp.where((root + 2.0**-k) ** 2 <= y, root + 2.0**-k, root)
    return root


def kepler_by_bisection(e, m):
    low, high = torch.zeros_like(m), torch.full_like(m, 3.2)
    for _ in range(55):
        middle = (low + high) / 2
        below = middle - e * torch.sin(middle) < m
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    return low


def kepler_root(e, m):
    return mp.findroot(lambda E: E - e[0] * mp.sin(E) - m[0], m[0] + e[0])


def bracketed(y):
    """A root of x² = y while the bracket is wide, with a branch of Python."""
    low, high = 0.0, 10.0
    while high - low > 1e-14:
        middle = (low + high) / 2
        if middle * middle < y:
            low = middle
        else:
            high = middle
    return low + high


def ternary_search(a):
    """The place of the maximum of a x - x⁴, to a third of the digits."""
    low, high = 0.0, 2.0
    for _ in range(45):
        c, d = low + (high - low) / 3, high - (high - low) / 3
        left = a * c - c**4 > a * d - d**4
        low, high = anp.where(left, low, c), anp.where(left, d, high)
    return low * 5


def quantile(p):
    """Of the logistic distribution, by bisection of its distribution function."""
    low, high = -40.0, 40.0
    for _ in range(70):
        middle = (low + high) / 2
        below = 1 / (1 + np.exp(-middle)) < p
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low


def exponential(x):
    """By a whole number of halvings and a polynomial: the whole number is a constant of the derivative."""
    k = jnp.round(x / np.log(2.0))
    r = x - k * np.log(2.0)
    return sum(r**n / float(mp.factorial(n)) for n in range(16)) * 2.0**k


def sine(x):
    """By its angle within a turn."""
    turned = x - 2 * np.pi * torch.round(x / (2 * np.pi))
    return torch.sin(turned)


def table_of_sines(x):
    """The nearest of 64 angles of a table, and Taylor's polynomial from there."""
    k = np.round(x * 64)
    t = x - k / 64
    a, b = np.sin(k / 64), np.cos(k / 64)
    return a * (1 - t * t / 2 + t**4 / 24) + b * (t - t**3 / 6 + t**5 / 120)


HIDDEN = rows(
    "branches that hide the derivative",
    wrong("jax", "a cube root by bisection", cube_root_in_jax, 5.0, truth=lambda y: 1 / (3 * mp.cbrt(y) ** 2)),
    wrong("jax", "a cube root by bisection in a product", lambda y, z: cube_root_in_jax(y) * z**2, 5.0, 0.7,
          truth=lambda y, z: [z * z / (3 * mp.cbrt(y) ** 2), 2 * z * mp.cbrt(y)]),
    wrong("jax", "a golden section", golden_section, 3.0, truth=D(smallest)),
    wrong("jax", "numbers quantised to 2^-40, squared", lambda x: jnp.sum((jnp.round(x * 2.0**40) / 2.0**40) ** 2),
          [0.3, 1.7], truth=lambda x: 2 * x),
    wrong("jax", "a floor of ten digits beside a square", lambda x: jnp.floor(x * 1e10) / 1e10 + x * x, 0.7,
          truth=lambda x: 1 + 2 * x),
    wrong("torch", "a logarithm bit by bit", lambda x: (logarithm_by_digits(x) * x).sum(), [1.3, 1.9],
          truth=lambda x: [mp.log(v, 2) + 1 / mp.log(2) for v in x]),
    wrong("torch", "Kepler's equation by bisection", lambda e, m: kepler_by_bisection(e, m).sum() + (e * m).sum(),
          [0.3], [1.1],
          truth=D(lambda e, m: kepler_root(e, m) + e[0] * m[0])),
    wrong("torch", "numbers rounded to twelve decimals", lambda x: (torch.round(x, decimals=12) * x).sum(),
          [0.3, -0.8], truth=lambda x: 2 * x),
    wrong("torch", "whole numbers and back", lambda x: ((x * 2.0**40).long().double() / 2.0**40 * x**2).sum(),
          [0.3, 0.8], truth=lambda x: 3 * x**2),
    wrong("autograd", "a square root bit by bit", lambda y: root_by_digits(y) * y, 2.7,
          truth=lambda y: mp.sqrt(y) * 3 / 2),
    wrong("autograd", "a ternary search", lambda a: ternary_search(a) + a, 2.0,
          truth=lambda a: 1 + 5 * mp.cbrt(a / 4) / (3 * a)),
    wrong("numpy", "an angle by CORDIC", lambda y, x: cordic(y, x) * x, 0.6, 1.1,
          truth=lambda y, x: [x * x / (x * x + y * y), mp.atan2(y, x) - x * y / (x * x + y * y)]),
    wrong("numpy", "a square root by brackets and branches of Python", lambda y: bracketed(y) + y * y, 7.0,
          truth=lambda y: 1 / mp.sqrt(y) + 2 * y),
    wrong("numpy", "a quantile by bisection", lambda p: quantile(p) * p, 0.8,
          truth=lambda p: mp.log(p / (1 - p)) + 1 / (1 - p)),
    right("jax", "a cube root by bisection with its rule", jax_vjp(cube_root_in_jax, lambda y, x, w: w / (3 * x * x)),
          5.0,
          truth=lambda y: 1 / (3 * mp.cbrt(y) ** 2)),
    wrong("jax", "a cube root by bisection with the rule of a square root",
          jax_vjp(cube_root_in_jax, lambda y, x, w: w / (2 * x)), 5.0,
          truth=lambda y: 1 / (3 * mp.cbrt(y) ** 2)),
    right("jax", "a bisection and a step of Newton", lambda y: polished(y), 5.0,
          truth=lambda y: 1 / (3 * mp.cbrt(y) ** 2)),
    right("torch", "a logarithm bit by bit with its rule", lambda x: torch_old(logarithm_by_digits,
          lambda x, y, w: w / (x * np.log(2.0)))(x).sum(), [1.3, 1.9],
          truth=lambda x: [1 / (v * mp.log(2)) for v in x]),
    wrong("torch", "a logarithm bit by bit with the rule of another base",
          lambda x: torch_old(logarithm_by_digits, lambda x, y, w: w / x)(x).sum(), [1.3, 1.9],
          truth=lambda x: [1 / (v * mp.log(2)) for v in x]),
    right("autograd", "a quantile by bisection with its rule",
          autograd_rule(quantile, lambda p, x, w: w / (p * (1 - p))), 0.8, truth=lambda p: 1 / (p * (1 - p))),
    wrong("autograd", "a quantile by bisection with the density instead of its reciprocal",
          autograd_rule(quantile, lambda p, x, w: w * p * (1 - p)), 0.8,
          truth=lambda p: 1 / (p * (1 - p))),
    right("jax", "an exponential by halvings", exponential, 3.3, truth=mp.exp),
    right("torch", "a sine within a turn", lambda x: sine(x).sum(), [20.0, -3.3],
          truth=lambda x: [mp.cos(v) for v in x]),
    right("numpy", "a table of sines", lambda x: table_of_sines(x), 0.83, truth=mp.cos),
)  # fmt: skip


def polished(y):
    x = jax.lax.stop_gradient(cube_root_in_jax(y))
    return x - (x**3 - y) / (3 * x * x)


ROWS = HIDDEN
