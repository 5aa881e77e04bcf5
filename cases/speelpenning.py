"""Product of n numbers, on the whole array.

    f(x) = Π_i x_i,   x_i near (i + 1) / (i + 2),   ∂f/∂x_i = f / x_i

Speelpenning's example of why reverse mode is cheap: n derivatives, each a product of n - 1 factors, at the cost of a
few products. `products` is the same function as a loop.

Speelpenning (1980), "Compiling fast partial derivatives of functions given by algorithms"; Griewank and Walther (2008),
"Evaluating Derivatives".
"""

import numpy as np

from adbench import Case

CASE = Case(
    f=lambda xp, x: xp.prod(x),
    inputs=lambda n, rng: {"x": np.arange(1, n + 1) / np.arange(2, n + 2) * np.exp(rng.normal(0, 0.1, n) / np.sqrt(n))},
    wrt=("x",),
    sizes=(1, 10, 100, 1_000, 10_000, 100_000),
    quick=(1, 10),
    gradient=lambda x: (np.prod(x) / x,),
    flops=lambda n: n,
    tags=("vectorised",),
    suites=("fastad",),
)
