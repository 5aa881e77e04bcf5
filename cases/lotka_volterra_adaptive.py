"""Lotka-Volterra predators and prey with adaptive steps, differentiated in parameters, start and both end times.

    prey' = prey (α - β predators),   predators' = predators (δ prey - γ)
    f(θ, start, t₀, t₁) = prey(t₁) + predators(t₁),   with θ = (α, β, γ, δ)

and time in units of n / 10, which takes about n / 2 steps. The Dormand-Prince method of order five halves and doubles
its steps by the difference to order four, so their number and sizes depend on the data, with jumps. The derivative is
that of the accepted steps. The hand-written gradient uses forward sensitivities: the variational equations

    S' = J S + ∂s'/∂θ,   S = ∂s/∂(θ, start, t₁),   J = ∂s'/∂s

go through the same steps; the column of t₁ starts in the last step, which ends there. The equations do not depend on
time: ∂f/∂t₀ = -∂f/∂t₁.

Lotka (1925), "Elements of Physical Biology"; Volterra (1926), Nature 118, 558-560; Hairer, Nørsett & Wanner (1993),
section I.14 (variational equations), II.4 and II.5 (steps by the estimated error).
"""

import numpy as np

from adbench import Case

from ._dormand_prince import ERROR, LONGER, SHORTEST, STAGES, integrated


def f(xp, theta, start, t0, t1, unit, tolerance):
    def slope(_, s):
        prey, predators = s[0], s[1]
        return xp.stack([prey * (theta[0] - theta[1] * predators), predators * (theta[3] * prey - theta[2])])

    return xp.sum(integrated(xp, slope, start, unit * t0, unit * t1, 0.25, tolerance))


A = np.array([row + (0.0,) * (len(STAGES) - len(row)) for row in STAGES])
E = np.array(ERROR)


def gradient(theta, start, t0, t1, unit, tolerance):
    alpha, beta, gamma, delta = theta[0], theta[1], theta[2], theta[3]

    def slope(y):
        prey, predators = y[0, 0], y[1, 0]
        k = np.empty_like(y)
        k[0] = (alpha - beta * predators) * y[0] - beta * prey * y[1]  # J S; the first column is set below
        k[1] = delta * predators * y[0] + (delta * prey - gamma) * y[1]
        k[0, 1] += prey
        k[0, 2] -= prey * predators
        k[1, 3] -= predators
        k[1, 4] += prey * predators
        k[0, 0] = prey * (alpha - beta * predators)
        k[1, 0] = predators * (delta * prey - gamma)
        return k

    y = np.zeros((2, 8))  # prey and predators: value, by θ, by the start, by the end
    y[:, 0] = start
    y[0, 5] = y[1, 6] = 1.0
    slopes = np.empty((7, 2, 8))
    slopes[0] = slope(y)
    time, end, h, done = unit * t0, unit * t1, 0.25, False
    while not done:
        done = not time + h < end
        size = end - time if done else h
        there = y
        for i in range(6):
            mixed = np.zeros((2, 8))
            for j in range(i + 1):
                mixed += A[i, j] * slopes[j]
            there = y + size * mixed
            if done:
                there[:, 7] += mixed[:, 0]
            slopes[i + 1] = slope(there)
        square = 0.0
        for k in range(2):
            error = 0.0
            for j in range(7):
                error += E[j] * slopes[j, k, 0]
            square += (size * error) ** 2
        if square > tolerance**2 and h > SHORTEST:
            h, done = h / 2, False
        else:
            time, y = time + h, there
            slopes[0] = slopes[6]
            if not square >= (tolerance / LONGER) ** 2:
                h = h * 2
    by = y[0] + y[1]
    return by[1:5].copy(), by[5:7].copy(), -unit * by[7], unit * by[7]


CASE = Case(
    f=f,
    inputs=lambda n, rng: {
        "theta": rng.uniform(0.5, 1.5, 4),
        "start": rng.uniform(0.5, 1.5, 2),
        "t0": rng.uniform(0.1, 0.2),
        "t1": rng.uniform(1.1, 1.2),
        "unit": n / 10,
        "tolerance": 1e-6,
    },
    wrt=("theta", "start", "t0", "t1"),
    sizes=(2, 10, 30, 100),
    quick=(2, 10),
    gradient=gradient,
    flops=lambda n: 80 * n + 1,
    tags=("ode", "data-dependent", "scalar-loop"),
)
