"""Prices of the cases of finance against closed forms."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import ncx2, norm

from adbench import Namespace
from adbench.catalog.discovery import catalog

CASES = catalog().cases
XP = Namespace(np)
RNG = np.random.default_rng(7)


def value(name: str, **inputs: Any) -> float:
    return float(CASES[name].f(XP, **inputs))


def module(name: str) -> Any:
    return importlib.import_module(CASES[name].f.__module__)


def black(forward: float, strike: float, volatility: float, expiry: float) -> float:
    """The undiscounted price of a call: Black (1976)."""
    spread = volatility * np.sqrt(expiry)
    d = np.log(forward / strike) / spread + spread / 2
    return float(forward * norm.cdf(d) - strike * norm.cdf(d - spread))


def test_heston_without_volatility_of_volatility_is_black_scholes_with_its_delta_and_rho() -> None:
    draws, market = RNG.normal(size=(24, 2, 200_000)), np.array([1.0, 0.9, 0.03])
    model = np.array([0.04, 1.5, 0.04, 0.0, -0.5])  # v stays at θ
    discount, forward = np.exp(-0.03), np.exp(0.03)
    given = {"market": market, "model": model, "draws": draws, "maturity": 1.0}
    assert value("heston", **given) == pytest.approx(discount * black(forward, 0.9, 0.2, 1.0), abs=0.002)
    assert CASES["heston"].gradient is not None
    by_market, _ = CASES["heston"].gradient(**given)
    d1 = np.log(forward / 0.9) / 0.2 + 0.1
    expected = [norm.cdf(d1), -discount * norm.cdf(d1 - 0.2), 0.9 * discount * norm.cdf(d1 - 0.2)]
    assert by_market == pytest.approx(expected, abs=0.006)


def test_sabr_calibration_without_volatility_of_volatility_is_the_exact_price_of_a_cev_model() -> None:
    """Cox (1975): dF = α F^β dW has noncentral χ² prices."""
    alpha, beta, forward, expiry = 0.25, 0.5, 1.0, 0.5
    for strike in (0.7, 0.9, 1.1, 1.4):
        kappa = 1 / (alpha**2 * (1 - beta) ** 2 * expiry)
        x, y = kappa * forward ** (2 * (1 - beta)), kappa * strike ** (2 * (1 - beta))
        b = 1 / (1 - beta)
        exact = forward * (1 - ncx2.cdf(y, b + 2, x)) - strike * ncx2.cdf(x, b, y)
        implied = brentq(lambda s, k=strike, p=exact: black(forward, k, s, expiry) - p, 0.01, 2)
        quotes = np.full((5, 1), implied)
        given = {
            "alpha": np.full(5, alpha),
            "rho": np.full(5, -0.3),
            "nu": np.full(5, 1e-4),
            "beta": beta,
            "forwards": np.full(5, forward),
            "strikes": np.full((5, 1), strike),
            "expiries": np.full(5, expiry),
            "quotes": quotes,
        }
        assert value("sabr_calibration", **given) < 5 * (100 * 2e-4) ** 2
        assert value("sabr_calibration", **given | {"quotes": quotes + 0.01}) == pytest.approx(5, rel=0.05)


def test_credit_valuation_adjustment_of_one_swap_is_a_sum_of_swaptions() -> None:
    """Jamshidian (1989): a swaption is a portfolio of options on bonds, in Hull and White's model with a flat curve."""
    names, args, _ = CASES["credit_valuation_adjustment"].bind(3, 0)
    given = dict(zip(names, args, strict=True))
    a, sigma, rate, fixed, h, hazard = 0.1, 0.012, 0.04, 0.04, 0.5, 0.03
    cash = module("credit_valuation_adjustment").portfolio([(1.0, 20, fixed)], 20)
    given |= {"forwards": np.full(20, rate), "hazards": np.full(20, hazard), "reversion": a, "volatility": sigma}
    given |= {"cash": cash, "draws": RNG.normal(size=(20, 50_000))}
    total = 0.0
    for j in range(20):
        t, ends = h * j, h * np.arange(j + 1, 21)
        paid = np.full(len(ends), fixed * h) + (ends == ends[-1])
        now, then, b = np.exp(-rate * t), np.exp(-rate * ends), (1 - np.exp(-a * (ends - t))) / a
        spread = sigma * b * np.sqrt((1 - np.exp(-2 * a * t)) / (2 * a))
        if j == 0:
            exposure = max(1 - paid @ then, 0.0)
        else:

            def strikes(m: float, p: Any = then / now, s: Any = spread) -> Any:
                return p * np.exp(-s * m - s * s / 2)

            k = strikes(brentq(lambda m, c=paid, g=strikes: c @ g(m) - 1, -20, 20))
            d = np.log(then / (k * now)) / spread + spread / 2
            exposure = paid @ (k * now * norm.cdf(spread - d) - then * norm.cdf(-d))
        total += (np.exp(-hazard * t) - np.exp(-hazard * (t + h))) * exposure
    assert value("credit_valuation_adjustment", **given) == pytest.approx(0.6 * total, rel=0.02)


def test_libor_market_model_gives_blacks_price_of_a_caplet_and_the_bonds_of_the_curve() -> None:
    steps, delta = 4, 0.25
    forwards, sigma = np.array([0.045, 0.05, 0.048, 0.052, 0.055]), 0.2
    given = {
        "forwards": forwards,
        "volatilities": np.full(4, sigma),
        "draws": RNG.normal(size=(steps, 200_000)),
        "alive": (np.arange(5) > np.arange(steps)[:, None]).astype(float),
        "accrual": delta,
    }
    bonds = np.cumprod(1 / (1 + delta * forwards))
    for strike, tolerance in ((0.05, 0.01), (0.055, 0.01), (0.0, 1e-3)):  # the last: a bond for another
        expected = 100 * bonds[4] * delta * (black(0.055, strike, sigma, 1.0) if strike else 0.055)
        flows = np.array([[1 + delta * strike]])
        assert value("libor_market_model", **given, flows=flows) == pytest.approx(expected, rel=tolerance)
