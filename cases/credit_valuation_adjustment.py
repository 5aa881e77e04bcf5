"""Credit valuation adjustment (CVA) of interest rate swaps by Monte Carlo on n paths, in both curves and the model.

    f = loss Σ_j q_j E_j,   E_j = 1/n Σ_paths max(V_j, 0),   j = 0 … 19
    q_j = exp(-h (λ_0 + … + λ_(j-1))) - exp(-h (λ_0 + … + λ_j))
    V_j = Σ_(i ≥ j) c_ji P_i exp(G_ji x_j - ½ G_ji² y_j),   P_i = exp(-h (f_0 + … + f_(i-1)))
    G_ji = (exp(-a (T_i - T_j)) - exp(-a (T_20 - T_j))) / a,   y_j = σ² (1 - exp(-2 a T_j)) / (2 a)
    x_(j+1) = exp(-a h) x_j + sqrt(y_1) z_j,   x_0 = 0

A default in the period after T_j = h j, with intensity λ_j, loses a share of what the swaps are worth at T_j if that is
positive. V_j is this value, discounted by the bond that matures at T_20. Forward rates f, hazard rates λ, mean
reversion a and volatility σ are active: 42 derivatives.

The rates follow the model of Hull and White, whose bond prices have a closed form. Relative to the bond that matures at
T_20, they are driftless functions of a Gaussian x, so the steps are exact. c_jj is the notional that is still alive at
T_j, and -c_ji are the fixed payments at T_i plus the notionals that end there. The random numbers z are inputs, so the
derivative is the pathwise one, and no path has a value of exactly 0, where max has a kink. The hand-written gradient
in C++ is its adjoint.

Hull and White (1990), "Pricing interest-rate-derivative securities", Review of Financial Studies 3, 573-592; Brigo,
Morini and Pallavicini (2013), "Counterparty Credit Risk, Collateral and Funding", chapter 4; Capriotti, Lee and Peacock
(2011), "Real time counterparty credit risk management in Monte Carlo", Risk 24(6), 86-90, for the adjoint. One of the
four workloads of auto-differentiation.github.io/benchmarks.
"""

import numpy as np

from adbench import Case

DATES, PERIOD = 20, 0.5


def f(xp, forwards, hazards, reversion, volatility, draws, gaps, cash, times, loss):
    dates, paths = draws.shape
    h = times[1]
    hazard = h * hazards
    reached = xp.cumulative_sum(hazard)
    defaults = xp.exp(hazard - reached) - xp.exp(-reached)
    bonds = xp.exp(-h * xp.concat([0 * forwards[:1], xp.cumulative_sum(forwards)]))
    spread = volatility * volatility / (2 * reversion)
    variances = spread * (1 - xp.exp(-2 * reversion * times))
    kept, noise = xp.exp(-reversion * h), xp.sqrt(spread * (1 - xp.exp(-2 * reversion * h)))

    def step(j, state):
        x, total = state
        decays = xp.exp(-reversion * gaps[j])
        loads = (decays - decays[-1]) / reversion
        prices = bonds * xp.exp(x[:, None] * loads - 0.5 * variances[j] * loads * loads)
        exposure = xp.sum(xp.maximum(prices @ cash[j], 0.0))
        return kept * x + noise * draws[j], total + defaults[j] * exposure

    _, total = xp.loop(step, (xp.zeros_like(draws[0]), 0.0), dates)
    return loss * total / paths


def portfolio(swaps, dates):
    """c_ji of swaps (notional, periods, fixed rate): fixed for floating, semi-annual payments, alive until they end."""
    cash = np.zeros((dates, dates + 1))
    for notional, periods, rate in swaps:
        for j in range(periods):
            cash[j, j] += notional
            cash[j, j + 1 : periods + 1] -= notional * rate * PERIOD
            cash[j, periods] -= notional
    return cash


def inputs(n, rng):
    swaps = [(rng.uniform(0.5, 1.5), periods, rng.uniform(0.015, 0.025)) for periods in (DATES, 16, 12, 8, 4)]
    swaps += [(-rng.uniform(0.1, 0.3), periods, rng.uniform(0.015, 0.025)) for periods in (14, 6)]
    times = PERIOD * np.arange(DATES + 1)
    return {
        "forwards": rng.uniform(0.03, 0.05, DATES),
        "hazards": rng.uniform(0.01, 0.04, DATES),
        "reversion": rng.uniform(0.05, 0.15),
        "volatility": rng.uniform(0.010, 0.014),
        "draws": rng.normal(size=(DATES, n)),
        "gaps": np.maximum(times - times[:DATES, None], 0.0),
        "cash": portfolio(swaps, DATES),
        "times": times,
        "loss": 0.6,
    }


CASE = Case(
    f=f,
    inputs=inputs,
    wrt=("forwards", "hazards", "reversion", "volatility"),
    sizes=(3, 30, 300, 3_000),
    quick=(3, 300),
    least=2,
    operators=("value", "gradient", "hvp"),  # 42 derivatives: a reference of the Hessian takes long
    flops=lambda n: n * DATES * (7 * (DATES + 1) + 5),
    tags=("finance", "random", "loop"),
    suites=("finance",),
)
