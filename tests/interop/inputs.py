"""Small inputs of gradbench's modules, and the functions' values there, computed without adbench's cases.

Values are numpy's from the definitions; derivatives are central differences of them, good to eight digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.special import multigammaln

RNG = np.random.default_rng(31337)


def slopes(f: Callable[[Any], Any], x: Any, step: float = 1e-5) -> Any:
    """∂f/∂x by differences of the fourth order: of the shape of f's value before that of x."""
    x = np.array(x, dtype=np.float64)
    found = []
    for i in np.ndindex(x.shape):

        def at(h: float, i: Any = i) -> Any:
            moved = x.copy()
            moved[i] += h
            return np.asarray(f(moved))

        found.append((8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step))
    parts = np.array(found)
    return np.moveaxis(parts, 0, -1).reshape(parts.shape[1:] + x.shape)


def gmm_input(d: int = 3, k: int = 2, n: int = 4, m: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    return {
        "d": d,
        "k": k,
        "n": n,
        "m": m,
        "gamma": 0.8,
        "x": rng.normal(size=(n, d)).tolist(),
        "alpha": rng.normal(size=k).tolist(),
        "mu": rng.normal(size=(k, d)).tolist(),
        "q": rng.normal(0, 0.5, (k, d)).tolist(),
        "l": rng.normal(0, 0.5, (k, d * (d - 1) // 2)).tolist(),
    }


def gmm(data: Mapping[str, Any]) -> float:
    """log likelihood + log prior, point by point."""
    d, k, n, m, gamma = (data[name] for name in ("d", "k", "n", "m", "gamma"))
    x, alpha, mu, q = (np.array(data[name]) for name in ("x", "alpha", "mu", "q"))
    total = -n * d / 2 * math.log(2 * math.pi) - n * np.logaddexp.reduce(alpha)
    factors = []
    for c in range(k):
        Q = np.diag(np.exp(q[c]))
        entries = iter(data["l"][c])
        for j in range(d):
            for i in range(j + 1, d):
                Q[i, j] = next(entries)
        factors.append(Q)
    for i in range(n):
        terms = [alpha[c] + q[c].sum() - ((factors[c] @ (x[i] - mu[c])) ** 2).sum() / 2 for c in range(k)]
        total += np.logaddexp.reduce(terms)
    nu = d + m + 1
    total += k * (nu * d * math.log(gamma / math.sqrt(2)) - multigammaln(nu / 2, d))
    return float(total - gamma**2 / 2 * sum((Q**2).sum() for Q in factors) + m * q.sum())


def ba_input(n: int = 2, m: int = 3, p: int = 5) -> dict[str, Any]:
    cam = [0.2, -0.1, 0.3, 0.1, 0.2, -4.0, 1.1, 0.1, -0.1, 0.05, 0.02]
    return {"n": n, "m": m, "p": p, "cam": cam, "x": [0.3, -0.2, 0.4], "w": 0.8, "feat": [0.1, -0.2]}


def reprojection(cam: Any, x: Any, w: Any, feat: Any) -> Any:
    """The two errors of an observation, with the rotation as the exponential of a skew-symmetric matrix."""
    from scipy.linalg import expm

    a, b, c = cam[:3]
    turned = expm(np.array([[0, -c, b], [c, 0, -a], [-b, a, 0]])) @ (np.asarray(x) - cam[3:6])
    q = turned[:2] / turned[2]
    rho = q @ q
    return w * (cam[6] * q * (1 + cam[9] * rho + cam[10] * rho**2) + cam[7:9] - np.asarray(feat))


def lstm_input(layers: int = 3, width: int = 2, frames: int = 4) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    return {
        "main_params": rng.normal(size=(2 * layers, 4 * width)).tolist(),
        "extra_params": rng.normal(size=(3, width)).tolist(),
        "state": rng.normal(size=(2 * layers, width)).tolist(),
        "sequence": rng.uniform(0.1, 1, (frames, width)).tolist(),
    }


def lstm(data: Mapping[str, Any]) -> float:
    """The loss, number by number."""
    main, extra, state, frames = (np.array(data[name]) for name in ("main_params", "extra_params", "state", "sequence"))
    width, state, total, count = frames.shape[1], state.copy(), 0.0, 0

    def sigmoid(z: float) -> float:
        return 1 / (1 + math.exp(-z))

    for t in range(len(frames) - 1):
        x = frames[t] * extra[0]
        for k in range(len(main) // 2):
            weights, offsets = main[2 * k].reshape(4, width), main[2 * k + 1].reshape(4, width)
            out = np.empty(width)
            for j in range(width):
                h, c = state[2 * k, j], state[2 * k + 1, j]
                forget = sigmoid(x[j] * weights[0, j] + offsets[0, j])
                ingate = sigmoid(h * weights[1, j] + offsets[1, j])
                outgate = sigmoid(x[j] * weights[2, j] + offsets[2, j])
                c = c * forget + ingate * math.tanh(h * weights[3, j] + offsets[3, j])
                state[2 * k, j], state[2 * k + 1, j] = outgate * math.tanh(c), c
                out[j] = state[2 * k, j]
            x = out
        y = x * extra[1] + extra[2]
        total += float(frames[t + 1] @ (y - math.log(2 + np.exp(y).sum())))
        count += width
    return -total / count


def ht_input(*, us: bool, mirrored: bool = False, vertices: int = 5, points: int = 3) -> dict[str, Any]:
    """Affine bones at random, in the order of ADBench's hand: the wrist, five fingers of four bones, the forearm."""
    rng, bones = np.random.default_rng(3), 22

    def affine() -> Any:
        matrix = np.eye(4)
        matrix[:3] = rng.normal(0, 0.6, (3, 4))
        return matrix.tolist()

    weights = rng.dirichlet(np.ones(bones), vertices)
    model = {
        "bone_count": bones,
        "bone_names": [f"b{i}" for i in range(bones)],
        "parents": [-1] + [0 if bone % 4 == 1 else bone - 1 for bone in range(1, bones)],
        "base_relatives": [affine() for _ in range(bones)],
        "inverse_base_absolutes": [affine() for _ in range(bones)],
        "base_positions": np.c_[rng.normal(size=(vertices, 3)), np.ones(vertices)].tolist(),
        "weights": weights.tolist(),
        "triangles": rng.integers(0, vertices, (4, 3)).tolist(),
        "is_mirrored": mirrored,
    }
    data = {
        "model": model,
        "correspondences": rng.integers(0, 4, points).tolist(),
        "points": rng.normal(size=(points, 3)).tolist(),
    }
    given = rng.uniform(0.1, 0.4, (points, 2)).tolist() if us else []
    return {"theta": rng.uniform(0.2, 0.9, 26).tolist(), "data": data, "us": given}


def ht(data: Mapping[str, Any]) -> Any:
    """The errors, bone by bone with matrices of four by four."""
    from scipy.linalg import expm

    theta, model = np.array(data["theta"]), data["data"]["model"]
    bones = model["bone_count"]
    angles = np.zeros((bones, 2))  # flexion, spread
    following = iter(theta[6:])
    for finger in range(5):
        for joint in range(3):
            angles[2 + 4 * finger + joint, 0] = next(following)
            if joint == 0:
                angles[2 + 4 * finger + joint, 1] = next(following)
    absolute: list[Any] = []
    for bone in range(bones):
        (cx, cz), (sx, sz) = np.cos(angles[bone]), np.sin(angles[bone])
        turn = np.eye(4)
        turn[:3, :3] = np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]]) @ [[1, 0, 0], [0, cx, -sx], [0, sx, cx]]
        relative = np.array(model["base_relatives"][bone]) @ turn
        parent = model["parents"][bone]
        absolute.append(relative if parent < 0 else absolute[parent] @ relative)
    posed = np.zeros((len(model["base_positions"]), 3))
    for bone in range(bones):
        moved = absolute[bone] @ np.array(model["inverse_base_absolutes"][bone]) @ np.array(model["base_positions"]).T
        posed += np.array(model["weights"])[:, bone, None] * moved[:3].T
    if model["is_mirrored"]:
        posed[:, 0] *= -1
    a, b, c = theta[:3]
    v = posed @ expm(np.array([[0, -c, b], [c, 0, -a], [-b, a, 0]])).T + theta[3:6]
    corners, points = data["data"]["correspondences"], np.array(data["data"]["points"])
    if not len(data["us"]):
        return (points - v[corners]).ravel()
    places = []
    for (first, second), corner in zip(np.array(data["us"]), corners, strict=True):
        i, j, k = model["triangles"][corner]
        places.append(first * v[i] + second * v[j] + (1 - first - second) * v[k])
    return (points - np.array(places)).ravel()


def ode(x: Any, steps: int) -> Any:
    """y(2), by the classical method with its four slopes named."""
    x, y, h = np.asarray(x), np.zeros(len(x)), 2 / steps

    def slope(y: Any) -> Any:
        return np.array([x[i] * (y[i - 1] if i else 1.0) for i in range(len(x))])

    for _ in range(steps):
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        k4 = slope(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y
