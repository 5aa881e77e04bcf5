"""Values of the cases against independently computed figures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.cluster.vq import vq
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from scipy.optimize import rosen, rosen_der
from scipy.spatial.transform import Rotation
from scipy.special import logsumexp
from scipy.stats import bernoulli, cauchy, halfcauchy, multivariate_normal, norm, wishart

from adbench import Namespace
from adbench.catalog.discovery import catalog

CASES = catalog().cases
XP = Namespace(np)


def inputs(name: str, size: int) -> Mapping[str, Any]:
    names, args, _ = CASES[name].bind(size, 0)
    return dict(zip(names, args, strict=True))


def value(name: str, **inputs: Any) -> float:
    return float(CASES[name].f(XP, **inputs))


@pytest.mark.parametrize("name", ["normal_log_density", "normal_log_density_loop"])
def test_normal_log_density_agrees_with_scipy(name: str) -> None:
    given = inputs(name, 1_000)
    expected = norm.logpdf(given["y"], given["mu"], given["sigma"]).sum()
    assert value(name, **given) == pytest.approx(expected, rel=1e-13)


def test_matrix_product_is_column_sums_times_row_sums() -> None:
    given = inputs("matrix_product", 32)
    expected = given["A"].sum(axis=0) @ given["B"].sum(axis=1)
    assert value("matrix_product", **given) == pytest.approx(expected, rel=1e-12)


def test_log_determinant_is_the_sum_of_the_eigenvalues_logarithms() -> None:
    given = inputs("log_determinant", 32)
    expected = np.log(np.abs(np.linalg.eigvals(given["A"]))).sum()
    assert value("log_determinant", **given) == pytest.approx(expected, rel=1e-12)


def test_lotka_volterra_converges_to_an_adaptive_solver_with_order_four() -> None:
    given = dict(inputs("lotka_volterra", 10))
    alpha, beta, gamma, delta = given["theta"]
    exact = solve_ivp(
        lambda _, s: [s[0] * (alpha - beta * s[1]), s[1] * (delta * s[0] - gamma)],
        (0, given["duration"]),
        given["start"],
        method="DOP853",
        rtol=1e-13,
        atol=1e-13,
    ).y[:, -1]
    error = [value("lotka_volterra", **given | {"steps": n}) - exact.sum() for n in (50, 100, 1_000)]
    assert abs(error[2]) < 1e-11
    assert error[0] / error[1] == pytest.approx(2**4, rel=0.1)


def test_recurrence_gives_the_published_values() -> None:
    # Neal's slides print these five for x = (7, 4, 9, 5, 3); the case is their sum.
    published = 50162.08 + 119580.26 + 422851.01 + 646335.83 + 802707.50
    assert value("recurrence", x=np.array([7.0, 4.0, 9.0, 5.0, 3.0])) == pytest.approx(published, abs=0.025)


def test_projectile_flies_farthest_at_the_known_angle() -> None:
    # 44.997 degrees at dt = 0.0001 and speed 1; a continuous flight has 45 degrees and the range v² / g.
    best = {"angle": math.radians(44.997), "speed": 1.0, "dt": 0.0001}
    assert value("projectile", **best) == pytest.approx(1 / 9.8, rel=1e-3)
    gradient = CASES["projectile"].gradient
    assert gradient is not None
    by_angle = [gradient(**best | {"angle": math.radians(degrees)})[0] for degrees in (44.996, 44.998)]
    assert by_angle[0] > 0 > by_angle[1]


def test_product_plus_constant_is_29_66() -> None:
    given = inputs("product_plus_constant", 1)
    assert value("product_plus_constant", **given) == pytest.approx(29.66, rel=1e-15)
    gradient = CASES["product_plus_constant"].gradient
    assert gradient is not None
    assert gradient(**given) == pytest.approx((2.2, 20.6))


def test_scalar_families_agree_with_numpys_reductions() -> None:
    x = inputs("sums", 1_000)["x"]
    assert value("sums", x=x) == pytest.approx(math.fsum(x), rel=1e-12)
    x = inputs("products", 1_000)["x"]
    assert value("products", x=x) == pytest.approx(math.exp(math.fsum(np.log(x))), rel=1e-12)
    assert value("speelpenning", x=np.arange(1, 101) / np.arange(2, 102)) == pytest.approx(1 / 101, rel=1e-13)
    assert value("powers", x=np.array([2.0, 0.5, 3.0])) == pytest.approx(1_000.0, rel=1e-13)


@pytest.mark.parametrize("name", ["log_sum_exp", "log_sum_exp_loop"])
def test_log_sum_exp_agrees_with_scipy(name: str) -> None:
    x = inputs(name, 1_000)["x"]
    assert value(name, x=x) == pytest.approx(logsumexp(x), rel=1e-13)
    assert value(name, x=np.zeros(7)) == pytest.approx(math.log(7), rel=1e-14)


def test_hypot_agrees_with_libm() -> None:
    given = inputs("hypot", 100)
    assert value("hypot", **given) == pytest.approx(math.fsum(map(math.hypot, given["x"], given["y"])), rel=1e-14)


@pytest.mark.parametrize("form", ["", "_elements"])
def test_matrix_operations_agree_with_other_lapack_routines(form: str) -> None:
    A = inputs("inverse", 16)["A"]
    u, s, vt = np.linalg.svd(A)
    pseudo_inverse = vt.T @ np.diag(1 / s) @ u.T
    assert value(f"inverse{form}", A=A) == pytest.approx(pseudo_inverse.sum(), rel=1e-11)
    given = inputs("solve", 16)
    expected = np.linalg.lstsq(given["A"], given["b"])[0].sum()
    assert value(f"solve{form}", **given) == pytest.approx(expected, rel=1e-11)
    S = inputs("cholesky", 16)["A"]
    # A = U D² Uᵀ and D Uᵀ = Q R: Rᵀ is the factor, up to signs.
    d, U = np.linalg.eigh(S)
    R = np.linalg.qr(np.sqrt(d)[:, None] * U.T)[1]
    assert value(f"cholesky{form}", A=S) == pytest.approx((R * np.sign(np.diag(R))[:, None]).sum(), rel=1e-11)
    given = inputs("quadratic_form", 16)
    assert value(f"quadratic_form{form}", **given) == pytest.approx(
        np.einsum("i,ij,j", given["x"], given["A"], given["x"]), rel=1e-12
    )
    assert value(f"log_determinant{form}", A=np.diag([2.0, 3.0, 4.0])) == pytest.approx(math.log(24), rel=1e-14)


@pytest.mark.parametrize("form", ["", "_elements"])
def test_multi_normal_and_gaussian_process_agree_with_scipy(form: str) -> None:
    given = inputs("multi_normal", 8)
    expected = multivariate_normal.logpdf(given["y"], given["mu"], given["sigma"])
    assert value(f"multi_normal{form}", **given) == pytest.approx(expected, rel=1e-12)
    given = inputs("gaussian_process", 8)
    gap = np.subtract.outer(given["t"], given["t"]) / given["rho"]
    K = given["alpha"] ** 2 * np.exp(-(gap**2) / 2) + given["sigma"] ** 2 * np.eye(8)
    expected = multivariate_normal.logpdf(given["y"], np.zeros(8), K)
    assert value(f"gaussian_process{form}", **given) == pytest.approx(expected, rel=1e-12)


def test_gaussian_mixture_agrees_with_scipys_densities_and_a_wishart_prior() -> None:
    given = inputs("gaussian_mixture", 20)
    x, alpha, mu, q, l = (given[name] for name in ("x", "alpha", "mu", "q", "l"))  # noqa: E741 - the case's name
    k, d = mu.shape
    weights, likelihood, prior = np.exp(alpha) / np.exp(alpha).sum(), np.zeros((20, k)), 0.0
    for j in range(k):
        Q = np.diag(np.exp(q[j]))
        Q[1, 0], Q[2, 0], Q[2, 1] = l[j]  # by columns
        precision = Q.T @ Q
        likelihood[:, j] = np.log(weights[j]) + multivariate_normal.logpdf(x, mu[j], np.linalg.inv(precision))
        # The prior is Wishart's for the precision with ν = d + m + 1 and scale I / γ², here m = 0 and γ = 1, but for
        # the factors 2^(νd/2) and |precision|^(...): log |Q Qᵀ|^((ν - d - 1) / 2) = m Σ q.
        prior += wishart.logpdf(precision, df=d + 1, scale=np.eye(d))
    expected = logsumexp(likelihood, axis=1).sum() + prior
    assert value("gaussian_mixture", **given) == pytest.approx(expected, rel=1e-12)


def test_eight_schools_agrees_with_scipys_densities() -> None:
    given = inputs("eight_schools", 8)
    tau = math.exp(given["log_tau"])
    expected = (
        norm.logpdf(given["y"], given["mu"] + tau * given["eta"], given["sigma"]).sum()
        + norm.logpdf(given["eta"]).sum()
        + norm.logpdf(given["mu"], 0, 5)
        + halfcauchy.logpdf(tau, 0, 5)
        + given["log_tau"]
    )
    assert value("eight_schools", **given) == pytest.approx(expected, rel=1e-13)


def test_stochastic_volatility_agrees_with_scipys_densities() -> None:
    given = inputs("stochastic_volatility", 50)
    phi, sigma, mu, z = (given[name] for name in ("phi", "sigma", "mu", "z"))
    h = np.empty(50)
    h[0] = mu + sigma * z[0] / math.sqrt(1 - phi**2)
    for t in range(1, 50):
        h[t] = mu + sigma * z[t] + phi * (h[t - 1] - mu)
    expected = (
        norm.logpdf(given["y"], 0, np.exp(h / 2)).sum()
        + norm.logpdf(z).sum()
        + cauchy.logpdf(sigma, 0, 5)
        + cauchy.logpdf(mu, 0, 10)
    )
    assert value("stochastic_volatility", **given) == pytest.approx(expected, rel=1e-12)


def test_regressions_agree_with_scipys_densities() -> None:
    given = inputs("logistic_regression", 40)
    p = 1 / (1 + np.exp(-given["X"] @ given["beta"]))
    expected = bernoulli.logpmf(given["y"], p).sum() - 0.5 * np.sum(given["beta"] ** 2)
    assert value("logistic_regression", **given) == pytest.approx(expected, rel=1e-12)
    given = inputs("linear_regression", 40)
    expected = (
        norm.logpdf(given["y"], given["X"] @ given["w"] + given["b"], given["sigma"]).sum()
        + norm.logpdf(given["w"]).sum()
        - 0.5 * given["b"] ** 2
        - math.log(1 + given["sigma"] ** 2)
    )
    assert value("linear_regression", **given) == pytest.approx(expected, rel=1e-12)


def test_rosenbrock_and_its_derivatives_agree_with_scipy() -> None:
    x = inputs("rosenbrock", 10)["x"]
    gradient = CASES["rosenbrock"].gradient
    assert gradient is not None
    assert value("rosenbrock", x=x) == pytest.approx(rosen(x), rel=1e-13)
    np.testing.assert_allclose(gradient(x)[0], rosen_der(x), rtol=1e-12)
    assert value("rosenbrock", x=np.ones(5)) == 0.0


def test_kmeans_agrees_with_scipys_distances() -> None:
    given = inputs("kmeans", 100)
    _, distances = vq(given["points"], given["centroids"])
    assert value("kmeans", **given) == pytest.approx((distances**2).sum(), rel=1e-12)
    nearest, _ = vq(given["points"], given["centroids"])
    assert set(nearest) == set(range(5))  # every centroid has points


def test_determinant_by_minors_is_the_determinant() -> None:
    A = inputs("determinant_by_minors", 6)["A"]
    assert value("determinant_by_minors", A=A) == pytest.approx(np.linalg.det(A), rel=1e-12)
    hilbert = np.array([[1 / (i + j + 1) for j in range(4)] for i in range(4)])
    assert value("determinant_by_minors", A=hilbert) == pytest.approx(1 / 6_048_000, rel=1e-9)  # published


def test_least_squares_polynomial_agrees_with_numpy() -> None:
    given = inputs("least_squares_polynomial", 101)
    residuals = given["s"] - np.polyval(given["x"][::-1], given["t"])
    assert value("least_squares_polynomial", **given) == pytest.approx(0.5 * np.sum(residuals**2), rel=1e-12)
    best = np.polynomial.polynomial.polyfit(given["t"], given["s"], 9)
    gradient = CASES["least_squares_polynomial"].gradient
    assert gradient is not None
    assert np.max(np.abs(gradient(best, given["t"], given["s"])[0])) < 1e-10


ADAPTIVE = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-12}


def test_van_der_pol_and_sir_converge_to_an_adaptive_solver() -> None:
    given = inputs("van_der_pol", 1_000)
    mu, span = given["mu"], (given["t0"], given["t1"])
    exact = solve_ivp(lambda _, s: [s[1], mu * (1 - s[0] ** 2) * s[1] - s[0]], span, given["start"], **ADAPTIVE)
    assert value("van_der_pol", **given) == pytest.approx(exact.y[:, -1].sum(), rel=1e-10)
    own = {name: given[name] for name in ("mu", "start", "t0", "t1")}
    assert value("van_der_pol_adaptive", **own, unit=1.0, tolerance=1e-9) == pytest.approx(
        exact.y[:, -1].sum(), rel=1e-8
    )
    given = inputs("sir", 1_000)
    b, gamma, a = given["theta"]

    def slope(t: float, s: Any) -> list[float]:
        new = b * (1 + a * math.cos(2 * math.pi * t)) * s[0] * s[1]
        return [-new, new - gamma * s[1]]

    exact = solve_ivp(slope, (given["t0"], given["t1"]), given["start"], **ADAPTIVE)
    assert value("sir", **given) == pytest.approx(exact.y[:, -1].sum(), rel=1e-9)
    own = {name: given[name] for name in ("theta", "start", "t0", "t1")}
    assert value("sir_adaptive", **own, unit=1.0, tolerance=1e-9) == pytest.approx(exact.y[:, -1].sum(), rel=1e-8)


def test_linear_chain_is_the_exponential_of_its_matrix() -> None:
    given = inputs("linear_chain", 6)
    matrix = np.zeros((7, 7))  # of (1, y), with 1' = 0
    matrix[range(1, 7), range(6)] = given["x"]
    exact = (expm(2.0 * matrix) @ [1.0, *given["start"]])[1:].mean()
    # Twenty steps of order four: close, but not equal.
    assert value("linear_chain", **given) == pytest.approx(exact, rel=1e-4)
    own = {name: given[name] for name in ("x", "start")}
    assert value("linear_chain_adaptive", **own, tolerance=1e-9) == pytest.approx(exact, rel=1e-8)


def test_reparameterised_draws_have_the_expectation_of_an_integral() -> None:
    rng = np.random.default_rng(1)
    given = dict(CASES["reparameterised_draws"].inputs(200_000, rng))
    mu, sigma, a, b = (given[name] for name in ("mu", "sigma", "a", "b"))

    def density(g: Any) -> Any:
        return mpmath.exp(a * mpmath.log(b) + (a - 1) * mpmath.log(g) - b * g - mpmath.loggamma(a))

    shrunk = float(mpmath.quad(lambda g: density(g) / (1 + g), [0, 1, 5, mpmath.inf]))
    assert value("reparameterised_draws", **given) == pytest.approx((mu**2 + sigma**2) * shrunk, rel=0.01)


def test_helmholtz_energy_of_one_gas_follows_the_equation_of_state() -> None:
    """For one gas the derivative in the volume is -p / R T by Peng and Robinson's equation."""
    x, b, A = 1.3, 0.25, 0.7
    case = CASES["helmholtz_energy"]

    def energy(volume: float) -> float:
        # x moles in a volume: f per unit of volume at the densities x / V, times V.
        given = {"x": np.array([x / volume]), "b": np.array([b]), "A": np.array([[A]])}
        return volume * float(case.f(XP, **given))

    h, v = 1e-5, 1.7
    pressure = -(energy(v + h) - energy(v - h)) / (2 * h)
    molar = v / x
    expected = 1 / (molar - b) - A / (molar**2 + 2 * b * molar - b**2)
    assert pressure == pytest.approx(expected, rel=1e-8)


def test_saddle_converges_to_the_saddle_point() -> None:
    for name in ("saddle", "saddle_nested"):
        given = inputs(name, 400)
        a, b, c = given["a"], given["b"], given["c"]
        # Ten inner steps come close to the inner maximum, and the point to the saddle.
        x = (a - c * b) / (1 + c**2)
        assert value(name, **given) == pytest.approx((x + b + c * x).sum(), rel=0.05)


def test_particle_converges_to_an_adaptive_solver_with_order_one() -> None:
    w = 0.1

    def slope(_: float, s: Any) -> list[float]:
        push = [0.0, 0.0]
        for cx, cy in ((10.0, 10.0 - w), (10.0, 0.0)):
            cube = math.hypot(s[0] - cx, s[1] - cy) ** 3
            push = [push[0] + (s[0] - cx) / cube, push[1] + (s[1] - cy) / cube]
        return [s[2], s[3], *push]

    def ground(_: float, s: Any) -> float:
        return float(s[1])

    ground.terminal = True  # type: ignore[attr-defined]  # scipy's way
    exact = solve_ivp(slope, (0, 100), [0.0, 8.0, 0.75, 0.0], events=ground, **ADAPTIVE).y[0, -1] ** 2
    errors = [value("particle", w=w, dt=dt) - exact for dt in (0.02, 0.01)]
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.05)
    assert value("particle_nested", w=w, dt=0.5) == value("particle", w=w, dt=0.5)


def test_bundle_adjustment_agrees_with_scipys_rotations() -> None:
    given = inputs("bundle_adjustment", 10)
    found = CASES["bundle_adjustment"].f(XP, **given)
    for i in range(10):
        camera, X = given["cameras"][i % 4], given["points"][i // 4]
        p = Rotation.from_rotvec(camera[:3]).apply(X - camera[3:6])
        q = p[:2] / p[2]
        rho = q @ q
        projected = camera[6] * q * (1 + camera[9] * rho + camera[10] * rho**2) + camera[7:9]
        w = given["weights"][i]
        np.testing.assert_allclose(found[i, :2], w * (projected - given["features"][i]), rtol=1e-11, atol=1e-13)
        assert found[i, 2] == pytest.approx(1 - w**2, rel=1e-14)


def test_hand_tracking_agrees_with_products_of_four_by_four_matrices() -> None:
    given = inputs("hand_tracking_simple", 5)
    theta, skeleton = given["theta"], given["skeleton"]

    def rigid(turn: Any, shift: Any) -> Any:
        return np.block([[np.asarray(turn), np.reshape(shift, (3, 1))], [np.zeros((1, 3)), np.ones((1, 1))]])

    absolutes = [rigid(skeleton["wrist_turn"], skeleton["wrist_shift"])]
    parents = [absolutes[0]] * 5
    for joint in range(3):
        for finger in range(5):
            flex, spread = theta[6 + 4 * finger + (0, 2, 3)[joint]], theta[7 + 4 * finger] if joint == 0 else 0.0
            bend = Rotation.from_euler("z", spread) * Rotation.from_euler("x", flex)
            rest = rigid(skeleton["turn"][joint, finger], skeleton["shift"][joint, finger])
            parents[finger] = parents[finger] @ rest @ rigid(bend.as_matrix(), np.zeros(3))
            absolutes.append(parents[finger])
    back = zip(skeleton["rest_turn_inverse"], skeleton["rest_shift_inverse"], strict=True)
    transforms = [absolute @ rigid(*rest) for absolute, rest in zip(absolutes, back, strict=True)]
    skinned = sum(
        w[:, None] * (np.c_[given["rest"], np.ones(5)] @ T.T)[:, :3]
        for w, T in zip(given["weights"].T, transforms, strict=True)
    )
    posed = Rotation.from_rotvec(theta[:3]).apply(skinned) + theta[3:6]
    np.testing.assert_allclose(CASES["hand_tracking_simple"].f(XP, **given), given["points"] - posed, rtol=1e-10)


def test_a_point_on_a_triangle_of_the_hand_is_the_weighted_mean_of_its_corners() -> None:
    given = inputs("hand_tracking_complicated", 5)
    u, simple = given.pop("u"), CASES["hand_tracking_simple"].f  # type: ignore[attr-defined]  # a dict, in fact
    corners = -simple(XP, **given | {"points": np.zeros((7, 3))})
    expected = [
        point - np.average(corners[i : i + 3], axis=0, weights=[*u[i], 1 - u[i].sum()])
        for i, point in enumerate(given["points"])
    ]
    found = CASES["hand_tracking_complicated"].f(XP, u=u, **given)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)


def test_lstm_and_nested_parameters_agree_with_torchs_layers() -> None:
    torch = pytest.importorskip("torch")
    given = inputs("nested_parameters", 30)
    (W1, b1), (W2, b2), (w3, b3) = ([torch.tensor(part, dtype=torch.float64) for part in p] for p in given["theta"])
    x, y = torch.as_tensor(given["x"]), torch.as_tensor(given["y"])
    linear = torch.nn.functional.linear
    z = linear(torch.tanh(linear(torch.tanh(linear(x, W1.T, b1)), W2.T, b2)), w3[None], b3)[:, 0]
    expected = -torch.nn.functional.binary_cross_entropy_with_logits(z, y, reduction="sum")
    assert value("nested_parameters", **given) == pytest.approx(float(expected), rel=1e-12)
    given = inputs("lstm", 7)
    layers = []
    for k in range(2):
        (wf, wi, wo, wc), (bf, bi, bo, bc) = given["main"][k]
        # A torch cell has gates (i, f, g, o), with one matrix for x and one for h.
        cell, zero = torch.nn.LSTMCell(4, 4, dtype=torch.float64), np.zeros((4, 4))
        for name, blocks in (
            ("weight_ih", (zero, np.diag(wf), zero, np.diag(wo))),
            ("weight_hh", (np.diag(wi), zero, np.diag(wc), zero)),
        ):
            getattr(cell, name).data = torch.as_tensor(np.concatenate(blocks))
        cell.bias_ih.data, cell.bias_hh.data = (
            torch.as_tensor(np.concatenate([bi, bf, bc, bo])),
            torch.zeros(16, dtype=torch.float64),
        )
        layers.append(cell)
    states = [
        (torch.as_tensor(h)[None], torch.as_tensor(c)[None])
        for h, c in zip(given["hidden"], given["memory"], strict=True)
    ]
    extra, total = given["extra"], 0.0
    for now, following in pairwise(given["frames"]):
        x = torch.as_tensor(now * extra[0])[None]
        for k, cell in enumerate(layers):
            states[k] = cell(x, states[k])
            x = states[k][0]
        y = x[0].detach().numpy() * extra[1] + extra[2]
        total += following @ (y - math.log(2 + np.exp(y).sum()))
    assert value("lstm", **given) == pytest.approx(-total / (7 * 4), rel=1e-12)


def test_square_sum_is_the_frobenius_norm_squared() -> None:
    M = inputs("square_sum", 30)["M"]
    assert value("square_sum", M=M) == pytest.approx(np.linalg.norm(M) ** 2, rel=1e-13)


def test_every_case_has_an_independent_value() -> None:
    text = "".join(
        Path(__file__).with_name(f"test_{name}.py").read_text("utf-8")
        for name in ("independent_values", "adaptive", "finance", "machine_learning", "science")
    )
    missing = [
        name
        for name, case in CASES.items()
        if not case.is_trap and case.same_twin in ("", name) and name.removesuffix("_elements") not in text
    ]
    assert missing == []
