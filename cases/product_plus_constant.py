"""Twice a product plus a constant at one point, the smallest smoke test.

    f(x1, x2) = 2 x1 x2 + 7;   f(10.3, 1.1) = 29.66,   gradient (2 x2, 2 x1) = (2.2, 20.6)

The example of the Stan forum's thread on autodiff by closures (which misprints 15.66).
"""

from adbench import Case


def f(xp, x1, x2):
    return 2 * x1 * x2 + 7


CASE = Case(
    f=f,
    inputs=lambda n, rng: {"x1": 10.3, "x2": 1.1},
    wrt=("x1", "x2"),
    sizes=(1,),
    gradient=lambda x1, x2: (2 * x2, 2 * x1),
    flops=lambda n: 3,
    tags=(
        "first look",
        "smoke",
    ),
)
