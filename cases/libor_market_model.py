"""Price of fifteen swaptions in the LIBOR market model, in n forward rates and their volatilities.

    L_i ← L_i exp(σ_i (δ (d_i - ½ σ_i) + sqrt(δ) z_k)),   d_i = Σ_(k < j ≤ i) σ_j δ L_j / (1 + δ L_j)   for i > k
    f(L, σ) = 100 / paths Σ_paths Σ_c max(1 - Σ_i F_ic B_i, 0) / Π_(k < m) (1 + δ L_k),   k = 0 … m-1,   m = n / 2
    B_i = Π_(m ≤ j ≤ i) 1 / (1 + δ L_j)

The lognormal rate L_i is for a quarter from T_i = δ i and fixed there. Swaption c pays at T_m what a swap is then worth
to the payer of the fixed rate; F_ic are its payments with the notional. Steps end where rates are fixed, and the money
market account is the numeraire. Payoffs are discounted along their path. At n = 80 these are the maturities and strikes
of the published test, in 159 derivatives: L_0 is fixed at once, so it has no volatility.

There are 20 paths at every size, because the cost relative to the price does not depend on their number. The random
numbers z are inputs, so the derivative is the pathwise one, and no swap is worth exactly 0, where max has a kink. The
hand-written gradient in C++ is its adjoint.

Brace, Gatarek and Musiela (1997), "The market model of interest rate dynamics", Mathematical Finance 7, 127-155; Giles
and Glasserman (2006), "Smoking adjoints: fast Monte Carlo Greeks", Risk 19(1), 88-92. One of the four workloads of
auto-differentiation.github.io/benchmarks.
"""

import numpy as np

from adbench import Case

ACCRUAL, PATHS = 0.25, 20
MATURITIES, STRIKES = (
    (0.1, 0.2, 0.5, 0.7, 1.0),
    (0.045, 0.05, 0.055),
)  # in shares of the n - m periods left; rates a year


def f(xp, forwards, volatilities, draws, alive, flows, accrual):
    steps, paths = draws.shape
    every = xp.concat([0 * volatilities[:1], volatilities])

    def step(k, rates):
        grown, moved = accrual * rates, every * alive[k]
        drifts = xp.cumulative_sum(moved * grown / (1 + grown), axis=1)
        noise = accrual**0.5 * draws[k]
        return rates * xp.exp(moved * (accrual * (drifts - 0.5 * every) + noise[:, None]))

    fixed = xp.loop(step, forwards + xp.zeros_like(draws[0])[:, None], steps)
    logs = xp.log(1 + accrual * fixed)
    bonds = xp.exp(-xp.cumulative_sum(logs[:, steps:], axis=1))
    payoffs = xp.sum(xp.maximum(1 - bonds @ flows, 0.0), axis=1)
    return 100 * xp.sum(xp.exp(-xp.sum(logs[:, :steps], axis=1)) * payoffs) / paths


def payments(periods, contracts):
    """F_ic of swaps (periods, fixed rate): the fixed rate in each period, and the notional in the last."""
    flows = np.zeros((periods, len(contracts)))
    for c, (last, rate) in enumerate(contracts):
        flows[:last, c] = ACCRUAL * rate
        flows[last - 1, c] += 1
    return flows


def inputs(n, rng):
    steps = n // 2
    contracts = [(max(1, round(share * (n - steps))), rate) for share in MATURITIES for rate in STRIKES]
    return {
        "forwards": rng.uniform(0.045, 0.055, n),
        "volatilities": rng.uniform(0.15, 0.25, n - 1),
        "draws": rng.normal(size=(steps, PATHS)),
        "alive": (np.arange(n) > np.arange(steps)[:, None]).astype(np.float64),
        "flows": payments(n - steps, contracts),
        "accrual": ACCRUAL,
    }


CASE = Case(
    f=f,
    inputs=inputs,
    wrt=("forwards", "volatilities"),
    sizes=(4, 10, 20, 40, 80, 160),
    quick=(4, 10),
    least=2,
    flops=lambda n: PATHS * (n // 2) * n * 9,
    tags=("finance", "random", "nested-loops"),
    suites=("finance",),
)
