"""Sums, products and powers of n numbers, as loops.

    sums       f(x) = Σ_i x_i,                  ∂f/∂x_i = 1
    products   f(x) = Π_i x_i,                  ∂f/∂x_i = f / x_i
    powers     f(x) = ((10^x_1)^x_2)^… ^x_n,    ∂f/∂x_i = f log(10) Π_j x_j / x_i

The scalar functions of the evaluation in Carpenter et al. (2015), "The Stan Math Library", arXiv:1509.07164, and,
except powers, of Yang (2021), "FastAD: Expression Template-Based C++ Library for Fast and Memory-Efficient Automatic
Differentiation", arXiv:2102.03681.
"""

import math

import numpy as np

from adbench import Case

SIZES = (1, 10, 100, 1_000, 10_000)
START = 10.0


def sums(xp, x):
    return xp.loop(lambda i, total: total + x[i], 0.0, x.shape[0])


def products(xp, x):
    return xp.loop(lambda i, product: product * x[i], 1.0, x.shape[0])


def powers(xp, x):
    return xp.loop(lambda i, power: power ** x[i], START, x.shape[0])


def near_one(n, rng):
    # The logarithm of the product is of order one for every n.
    return {"x": np.exp(rng.normal(size=n) / (2 * math.sqrt(n)))}


def gradient_of_powers(x):
    exponent = np.prod(x)
    return (START**exponent * math.log(START) * exponent / x,)


CASES = {
    "sums": Case(
        f=sums,
        inputs=lambda n, rng: {"x": rng.normal(size=n)},
        wrt=("x",),
        sizes=SIZES,
        quick=(1, 10, 100),
        gradient=lambda x: (np.ones_like(x),),
        flops=lambda n: n,
        tags=("scalar-loop",),
        suites=("stan-paper", "fastad"),
        summary="Sum of n numbers, as a loop.",
    ),
    "products": Case(
        f=products,
        inputs=near_one,
        wrt=("x",),
        sizes=SIZES,
        quick=(1, 10, 100),
        gradient=lambda x: (np.prod(x) / x,),
        flops=lambda n: n,
        tags=("scalar-loop",),
        suites=("stan-paper", "fastad", "quick"),
        summary="Product of n numbers, as a loop.",
    ),
    "powers": Case(
        f=powers,
        inputs=near_one,
        wrt=("x",),
        sizes=SIZES,
        quick=(1, 10, 100),
        gradient=gradient_of_powers,
        flops=lambda n: n,
        tags=("scalar-loop",),
        suites=("stan-paper",),
        summary="A power of a power, n times.",
    ),
}
