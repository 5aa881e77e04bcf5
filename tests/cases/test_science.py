"""The cases of the suite `science` against known truths: exact solutions, invariants, other methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from adbench import Namespace
from adbench.catalog import discovery
from adbench.catalog.source import Source

CASES = discovery.catalog().cases
XP = Namespace(np)


def helper(name: str) -> Any:
    path = discovery.builtin_folder("cases") / f"{name}.py"
    return discovery.load(Source("cases", name, str(path), True))


def inputs(name: str, size: int, seed: int = 0) -> dict[str, Any]:
    names, args, _ = CASES[name].bind(size, seed)
    return dict(zip(names, args, strict=True))


def value(name: str, given: Mapping[str, Any]) -> float:
    return float(CASES[name].f(XP, **given))


def by_hand(name: str, given: Mapping[str, Any]) -> tuple[Any, ...]:
    gradient = CASES[name].gradient
    assert gradient is not None
    return gradient(**given)


def test_the_kalman_filter_gives_the_multivariate_normal_density_of_all_observations() -> None:
    given = inputs("kalman_filter", 6)
    A, H = given["A"], given["H"]
    mean, P, means, after = given["mean"], np.eye(4), [], []
    for _ in range(6):
        mean, P = A @ mean, A @ P @ A.T + np.diag(given["q"] ** 2)
        means.append(H @ mean)
        after.append(P)
    # cov(s_t, s_u) = A^(t - u) cov(s_u) for t ≥ u
    joint = np.zeros((6, 2, 6, 2))
    for t in range(6):
        for u in range(t + 1):
            joint[t, :, u] = H @ np.linalg.matrix_power(A, t - u) @ after[u] @ H.T
            joint[u, :, t] = joint[t, :, u].T
        joint[t, :, t] += np.diag(given["r"] ** 2)
    expected = multivariate_normal(np.concatenate(means), joint.reshape(12, 12)).logpdf(given["y"].ravel())
    assert value("kalman_filter", given) == pytest.approx(expected, rel=1e-12)


def test_a_sine_mode_of_the_heat_equation_decays_by_its_exact_factor() -> None:
    n, steps, kappa = 9, 16, 0.8
    wave = np.sin(np.pi * np.arange(1, n + 1) / (n + 1))
    mode = np.outer(wave, wave)
    factor = 1 - 0.2 * kappa * 8 * np.sin(np.pi / (2 * (n + 1))) ** 2
    given = {"start": mode, "kappa": np.full((n, n), kappa), "steps": steps}
    found = value("heat_equation", given | {"observed": np.zeros((n, n))})
    assert found == pytest.approx(0.5 * factor ** (2 * steps) * np.sum(mode**2), rel=1e-13)
    assert value("heat_equation", given | {"observed": factor**steps * mode}) < 1e-28
    # The mode of the plate itself decays with exp(-2 π² κ t).
    assert factor**steps == pytest.approx(np.exp(-2 * (np.pi / (n + 1)) ** 2 * kappa * 0.2 * steps), rel=5e-3)


def cole_hopf(x: Any, time: float, viscosity: float) -> Any:
    """Burgers' equation from φ = 2 + cos(x) exp(-ν t), a solution of the heat equation: u = -2 ν φ_x / φ."""
    decay = np.exp(-viscosity * time)
    return 2 * viscosity * np.sin(x) * decay / (2 + np.cos(x) * decay)


def test_burgers_equation_converges_with_order_two_to_the_solution_of_cole_and_hopf() -> None:
    viscosity, end, errors = 0.5, 1.0, []
    for n in (32, 64):
        x, steps = 2 * np.pi * np.arange(n) / n, n * n // 32
        ends = {"start": cole_hopf(x, 0.0, viscosity), "observed": cole_hopf(x, end, viscosity)}
        grid = {"viscosity": viscosity, "dx": 2 * np.pi / n, "dt": end / steps, "steps": steps}
        errors.append(np.sqrt(2 * value("burgers_equation", ends | grid) / n))
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.05)
    assert errors[1] < 1e-3


def test_a_pair_of_bodies_rests_at_the_known_distance_with_energy_minus_epsilon() -> None:
    rest = 2 ** (1 / 6) * 1.1
    given = {"x": rest * np.array([[0.0, 0, 0], [2 / 3, 1 / 3, 2 / 3]]), "epsilon": 0.7, "sigma": 1.1}
    assert value("lennard_jones", given) == pytest.approx(-0.7, rel=1e-14)
    assert np.abs(by_hand("lennard_jones", given)[0]).max() < 1e-13


def test_thirteen_bodies_reach_the_known_energy_of_the_icosahedron() -> None:
    # -44.326801 is the lowest known energy of 13 bodies: Hoare and Pal (1971), Advances in Physics 20, 161-196.
    golden = (1 + np.sqrt(5)) / 2
    corners = np.array([np.roll([0, a, b * golden], k) for k in range(3) for a in (-1, 1) for b in (-1, 1)])
    start = np.concatenate([[[0.1, 0.0, 0.0]], 0.6 * corners])

    def energy_and_slopes(x: Any) -> tuple[float, Any]:
        given = {"x": x.reshape(13, 3), "epsilon": 1.0, "sigma": 1.0}
        return value("lennard_jones", given), by_hand("lennard_jones", given)[0].ravel()

    found = minimize(energy_and_slopes, start.ravel(), jac=True, method="BFGS", options={"gtol": 1e-7})
    assert found.fun == pytest.approx(-44.326801, abs=1e-6)


def energy_of_rods(given: Mapping[str, Any], angles: Any, rates: Any) -> float:
    """Kinetic and potential energy from the motion of each rod's centre, by a complex step in time."""
    turned = angles + 1e-30j * rates
    x, y = np.cumsum(given["lengths"] * np.cos(turned)), np.cumsum(given["lengths"] * np.sin(turned))
    kinetic = potential = 0.0
    for i, (mass, length) in enumerate(zip(given["masses"], given["lengths"], strict=True)):
        centre_x = x[i] - 0.5 * length * np.cos(turned[i])
        centre_y = y[i] - 0.5 * length * np.sin(turned[i])
        square = (centre_x.imag**2 + centre_y.imag**2) / 1e-60
        kinetic += 0.5 * mass * square + mass * length**2 / 24 * rates[i] ** 2
        potential += 9.8 * mass * centre_y.real
    return float(kinetic + potential)


@pytest.mark.parametrize("links", [1, 2, 5])
def test_the_energy_of_the_arm_changes_by_the_work_of_its_torques(links: int) -> None:
    arm, method = helper("robot_arm"), helper("_runge_kutta")
    given = inputs("robot_arm", links)
    slope, _ = arm.motion_of(XP, given["masses"], given["lengths"], given["outward"], given["torques"])
    net = given["torques"] - np.append(given["torques"][1:], 0)

    def with_work(time: Any, state: Any) -> Any:
        return np.append(slope(time, state[:-1]), net @ state[links:-1])

    start = np.concatenate([given["angles"], given["rates"], [0.0]])
    end = method.integrated(XP, with_work, start, 0.0, 0.5, 1_000)
    gained = energy_of_rods(given, end[:links], end[links:-1]) - energy_of_rods(given, given["angles"], given["rates"])
    assert abs(end - start).max() > 0.1
    assert gained == pytest.approx(end[-1], rel=1e-6)


def test_an_arm_of_one_link_is_a_physical_pendulum() -> None:
    given = inputs("robot_arm_rollout", 200) | inputs("robot_arm", 1) | {"steps": 200}
    mass, length, torque = (float(given[name][0]) for name in ("masses", "lengths", "torques"))

    def slope(_: float, s: Any) -> Any:
        return s[1], (torque - mass * 9.8 * length / 2 * np.cos(s[0])) / (mass * length**2 / 3)

    start = (given["angles"][0], given["rates"][0])
    angle, rate = solve_ivp(slope, (0, given["duration"]), start, method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    miss = length * np.array([np.cos(angle), np.sin(angle)]) - given["target"]
    expected = 0.5 * miss @ miss + 0.05 * (length * rate) ** 2
    assert value("robot_arm_rollout", given) == pytest.approx(expected, rel=1e-8)


def cart_and_bob(u: float) -> Callable[[float, Any], Any]:
    """Lagrange's equations of the cart and the bob, as a linear system, with the running cost as the last state."""

    def slope(_: float, s: Any) -> Any:
        x, angle, v, rate, _ = s
        mass = np.array([[1.3, 0.15 * np.cos(angle)], [0.15 * np.cos(angle), 0.075]])
        force = np.array([u + 0.15 * rate**2 * np.sin(angle), -0.3 * 9.8 * 0.5 * np.sin(angle)])
        cost = 0.5 * x**2 + 1 + np.cos(angle) + 0.05 * (v**2 + rate**2) + 0.05 * u**2
        return v, rate, *np.linalg.solve(mass, force), cost

    return slope


def test_the_cost_of_a_control_converges_with_order_one_to_that_of_the_exact_motion() -> None:
    given = inputs("optimal_control", 1)
    start = [*given["start"], 0.0]
    s = solve_ivp(cart_and_bob(1.5), (0, 1.5), start, method="DOP853", rtol=1e-11, atol=1e-11).y[:, -1]
    exact = s[4] + 5 * (0.5 * s[0] ** 2 + 1 + np.cos(s[1]) + 0.05 * (s[2] ** 2 + s[3] ** 2))
    errors = [value("optimal_control", given | {"controls": np.full(n, 1.5)}) - exact for n in (500, 1_000)]
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.02)
    assert abs(errors[1]) < 0.05


def test_an_upright_pendulum_at_rest_stays_and_costs_nothing() -> None:
    given = {"controls": np.zeros(20), "start": np.array([0.0, np.pi, 0.0, 0.0]), "duration": 0.5}
    assert abs(value("optimal_control", given)) < 1e-12
    assert np.abs(by_hand("optimal_control", given)[0]).max() < 1e-12


def test_the_gaussian_process_of_500_points_is_a_normal_density() -> None:
    given = inputs("gaussian_process", 500)
    gap = (given["t"][:, None] - given["t"]) / given["rho"]
    covariance = given["alpha"] ** 2 * np.exp(-0.5 * gap**2) + given["sigma"] ** 2 * np.eye(500)
    expected = multivariate_normal(np.zeros(500), covariance).logpdf(given["y"])
    assert value("gaussian_process", given) == pytest.approx(expected, rel=1e-10)
