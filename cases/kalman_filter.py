"""Log likelihood of n observations by the Kalman filter, differentiated in the model.

    s_t = A s_(t-1) + N(0, diag q²),   y_t = H s_t + N(0, diag r²),   s_0 ~ N(mean, I)

    m = A m',   P = A P' Aᵀ + diag q²,   e = y_t - H m,   S = H P Hᵀ + diag r²,   K = P Hᵀ S⁻¹
    m' = m + K e,   P' = P - K H P,   f(A, q, r) = Σ_t -½ (e · S⁻¹ e + log det S + 2 log 2π)

with four states, of which two are observed. With S = L Lᵀ, V = L⁻¹ H P and v = L⁻¹ e: K e = Vᵀ v and K H P = Vᵀ V.
The hand-written gradient takes the steps backwards.

Kalman (1960), "A new approach to linear filtering and prediction problems", Journal of Basic Engineering 82, 35-45;
the likelihood in Schweppe (1965), IEEE Transactions on Information Theory 11, 61-70.
"""

import math

import numpy as np

from adbench import Case

STATES, OBSERVED = 4, 2


def f(xp, y, A, q, r, H, mean):
    process, noise = xp.eye(STATES) * (q * q), xp.eye(OBSERVED) * (r * r)

    def step(t, state):
        m, P, total = state
        m, P = A @ m, A @ P @ xp.matrix_transpose(A) + process
        HP = H @ P
        L = xp.linalg.cholesky(HP @ xp.matrix_transpose(H) + noise)
        whitened = xp.linalg.solve(L, xp.concat([HP, (y[t] - H @ m)[:, None]], axis=1))
        V, v = whitened[:, :STATES], whitened[:, STATES]
        log_density = -0.5 * xp.sum(v * v) - xp.sum(xp.log(xp.linalg.diagonal(L))) - math.log(2 * math.pi)
        return m + v @ V, P - xp.matrix_transpose(V) @ V, total + log_density

    return xp.loop(step, (mean, xp.eye(STATES), 0 * xp.sum(q)), y.shape[0])[2]


def gradient(y, A, q, r, H, mean):
    m, P, steps = mean, np.eye(STATES), []
    for seen in y:
        before, (m, P) = (m, P), (A @ m, A @ P @ A.T + np.diag(q**2))
        W = np.linalg.inv(H @ P @ H.T + np.diag(r**2))
        K, w = P @ H.T @ W, W @ (seen - H @ m)
        F = np.eye(STATES) - K @ H
        steps.append((*before, W, w, K, F))
        m, P = m + P @ H.T @ w, F @ P
    by_A, by_process, by_noise = np.zeros_like(A), np.zeros(STATES), np.zeros(OBSERVED)
    by_m, by_P = np.zeros(STATES), np.zeros((STATES, STATES))
    for last_m, last_P, W, w, K, F in reversed(steps):
        by_S = 0.5 * (np.outer(w, w) - W)  # of the log density
        by_noise += np.diag(by_S + K.T @ by_P @ K - np.outer(K.T @ by_m, w))
        pull = np.outer(F.T @ by_m, H.T @ w)
        by_P = F.T @ by_P @ F + 0.5 * (pull + pull.T) + H.T @ by_S @ H
        by_m = F.T @ by_m + H.T @ w
        by_process += np.diag(by_P)
        by_A += np.outer(by_m, last_m) + 2 * by_P @ A @ last_P
        by_m, by_P = A.T @ by_m, A.T @ by_P @ A
    return by_A, 2 * q * by_process, 2 * r * by_noise


def inputs(n, rng):
    # A damped rotation: the process neither dies nor grows.
    return {
        "y": rng.normal(size=(n, OBSERVED)),
        "A": 0.9 * np.linalg.qr(rng.normal(size=(STATES, STATES)))[0],
        "q": rng.uniform(0.3, 0.6, STATES),
        "r": rng.uniform(0.3, 0.6, OBSERVED),
        "H": np.eye(OBSERVED, STATES),
        "mean": rng.normal(size=STATES),
    }


CASE = Case(
    f=f,
    inputs=inputs,
    wrt=("A", "q", "r"),
    sizes=(1, 10, 100, 1_000),
    quick=(1, 5),
    gradient=gradient,
    flops=lambda n: 500 * n,
    tags=("density", "linear-algebra", "loop", "science"),
    suites=("science",),
)
