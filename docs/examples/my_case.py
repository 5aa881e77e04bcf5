"""Harmonic mean of n numbers, in each of them: f(x) = n / Σ 1/x_i, with ∂f/∂x_i = f² / (n x_i²)."""

from adbench import Case


def f(xp, x):
    return x.shape[0] / xp.sum(1 / x)


CASE = Case(
    f=f,
    inputs=lambda n, rng: {"x": rng.uniform(0.5, 2.0, n)},
    wrt=("x",),
    sizes=(1, 10, 100, 1_000),
    gradient=lambda x: (x.size / ((1 / x).sum() * x) ** 2,),
)
