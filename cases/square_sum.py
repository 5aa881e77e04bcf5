"""Sum of the squares of the entries of an n × n matrix.

    f(M) = Σ_ij M_ij²,   ∂f/∂M_ij = 2 M_ij

The Jacobian of the squares is a diagonal n² × n² matrix: n⁴ numbers if stored in full, n² if known to be diagonal.

Neal (2019), "An Automatic Differentiation Extension for R, and its Implementation in pqR": compact Jacobians.
"""

from adbench import Case

CASE = Case(
    f=lambda xp, M: xp.sum(M * M),
    inputs=lambda n, rng: {"M": rng.normal(size=(n, n))},
    wrt=("M",),
    sizes=(1, 3, 10, 30, 100, 300, 1_000),
    quick=(1, 10),
    gradient=lambda M: (2 * M,),
    flops=lambda n: 2 * n**2,
    tags=("elementwise", "matrix"),
    suites=("pqr", "ablations"),
)
