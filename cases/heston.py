"""Price of a European call in Heston's model by Monte Carlo on n paths, in all eight parameters.

    f(market, model) = exp(-r T) / n Σ_paths max(S_T - K, 0),   market = (S_0, K, r),   model = (v_0, κ, θ, ξ, ρ)
    dS = r S dt + sqrt(v) S dW₁,   dv = κ (θ - v) dt + ξ sqrt(v) dW₂,   dW₁ dW₂ = ρ dt

The scheme has a fixed number of steps of length h. The logarithm of S takes Euler steps. The volatility y = sqrt(v)
takes drift-implicit ones, y⁺ = y + ½ ξ sqrt(h) z + h ((κ θ - ξ²/4) / (2 y⁺) - ½ κ y⁺), whose positive root exists for
4 κ θ > ξ². Euler steps of v itself can become negative, and the usual sqrt(max(v, 0)) has no derivative there.

The random numbers z are inputs, so the derivative is the pathwise one. It exists although the payoff has a kink at
S_T = K: a path ends exactly there with probability 0, and none does at these inputs. The hand-written gradient is its
adjoint.

Heston (1993), "A closed-form solution for options with stochastic volatility", Review of Financial Studies 6, 327-343;
Alfonsi (2005), "On the discretization schemes for the CIR (and Bessel squared) processes", Monte Carlo Methods and
Applications 11, 355-384; Broadie and Glasserman (1996), "Estimating security price derivatives using simulation",
Management Science 42, 269-285. One of the four workloads of auto-differentiation.github.io/benchmarks.
"""

import numpy as np

from adbench import Case

STEPS = 24


def f(xp, market, model, draws, maturity):
    spot, strike, rate = market[0], market[1], market[2]
    variance, reversion, level, spread, correlation = model[0], model[1], model[2], model[3], model[4]
    steps, h = draws.shape[0], maturity / draws.shape[0]
    divisor = 2 + reversion * h
    shift = divisor * h * (4 * reversion * level - spread * spread) / 4
    half, rest = 0.5 * h**0.5 * spread, xp.sqrt(1 - correlation * correlation)

    def step(k, state):
        x, y = state
        z = draws[k]
        noise = h**0.5 * (correlation * z[0] + rest * z[1])
        moved = y + half * z[0]
        return x + y * (noise - 0.5 * h * y), (moved + xp.sqrt(moved * moved + shift)) / divisor

    still = xp.zeros_like(draws[0, 0])
    x, _ = xp.loop(step, (still + rate * maturity, still + xp.sqrt(variance)), steps)
    payoffs = xp.maximum(spot * xp.exp(x) - strike, 0.0)
    return xp.exp(-rate * maturity) * xp.sum(payoffs) / draws.shape[2]


def gradient(market, model, draws, maturity):
    (spot, strike, rate), (variance, reversion, level, spread, correlation) = market, model
    steps, _, paths = draws.shape
    h = maturity / steps
    divisor, inside = 2 + reversion * h, 4 * reversion * level - spread**2
    half, rest = 0.5 * np.sqrt(h) * spread, np.sqrt(1 - correlation**2)
    x, ys, roots = np.full(paths, rate * maturity), [np.full(paths, np.sqrt(variance))], []
    noises = np.sqrt(h) * (correlation * draws[:, 0] + rest * draws[:, 1])
    for z, noise in zip(draws[:, 0], noises, strict=True):
        y = ys[-1]
        x = x + y * (noise - 0.5 * h * y)
        moved = y + half * z
        roots.append(np.sqrt(moved**2 + divisor * h * inside / 4))
        ys.append((moved + roots[-1]) / divisor)
    ends = spot * np.exp(x)
    weight = np.where(ends < strike, 0.0, np.exp(-rate * maturity) / paths)
    by_x, by_y = weight * ends, np.zeros(paths)
    by_shift = by_divisor = by_half = by_correlation = 0.0
    for k in reversed(range(steps)):
        y, after, root, z = ys[k], ys[k + 1], roots[k], draws[k]
        by_shift += np.sum(by_y / (2 * root)) / divisor
        by_divisor -= np.sum(by_y * after) / divisor
        by_moved = by_y * after / root
        by_half += np.sum(by_moved * z[0])
        by_correlation += np.sum(by_x * y * np.sqrt(h) * (z[0] - correlation / rest * z[1]))
        by_y = by_moved + by_x * (noises[k] - h * y)
    by_market = (
        np.sum(by_x) / spot,
        -np.sum(weight),
        maturity * (np.sum(by_x) - np.sum(weight * (ends - strike))),
    )
    by_model = (
        np.sum(by_y) / (2 * np.sqrt(variance)),
        h * by_divisor + by_shift * h * (h * inside / 4 + divisor * level),
        by_shift * divisor * h * reversion,
        0.5 * np.sqrt(h) * by_half - by_shift * divisor * h * spread / 2,
        by_correlation,
    )
    return np.array(by_market), np.array(by_model)


def inputs(n, rng):
    market = rng.uniform((0.95, 0.80, 0.01), (1.05, 0.90, 0.05))
    model = rng.uniform((0.04, 1.0, 0.06, 0.2, -0.8), (0.09, 2.0, 0.12, 0.4, -0.4))
    return {"market": market, "model": model, "draws": rng.normal(size=(STEPS, 2, n)), "maturity": 1.0}


CASE = Case(
    f=f,
    inputs=inputs,
    wrt=("market", "model"),
    sizes=(10, 100, 1_000, 10_000),
    quick=(10, 1_000),
    least=5,
    gradient=gradient,
    flops=lambda n: n * (15 * STEPS + 4),
    tags=("finance", "random", "loop"),
    suites=("finance",),
)
