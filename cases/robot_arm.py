"""Where an arm of several links ends, differentiated in its torques, its start and its masses.

    M(θ) θ'' + C(θ) (θ')² + G(θ) = T,   M_ij = B_ij cos(θ_i - θ_j),   C_ij = B_ij sin(θ_i - θ_j)
    G_i = g Σ_k m_k A_ki cos θ_i,   T_i = torque_i - torque_(i+1),   B = Aᵀ diag(m) A + diag(m l² / 12)

    f(torques, angles, masses) = ½ ‖tip - target‖² + 0.05 Σ_i (l_i θ_i')²   at the end

with the angle θ_i of link i to the horizontal and A_ki = l_i if link k is farther out than i, l_i / 2 if k = i, else 0:
Lagrange's equations of uniform rods in a vertical plane. `robot_arm` has n links and 10 Runge-Kutta steps;
`robot_arm_rollout` has 3 links and n steps.

Spong, Hutchinson and Vidyasagar (2006), "Robot Modeling and Control", chapter 7.
"""

import numpy as np

from adbench import Case

from ._runge_kutta import integrated

GRAVITY = 9.8


def motion_of(xp, masses, lengths, outward, torques):
    """The slope of (angles, rates) and the matrix B; `outward` is A for links of length one."""
    links = masses.shape[0]
    reach = outward * lengths
    B = xp.matrix_transpose(reach) @ (masses[:, None] * reach) + xp.eye(links) * (masses * lengths * lengths / 12)
    weight = GRAVITY * (masses @ reach)
    net = torques - xp.concat([torques[1:], xp.zeros_like(torques[:1])])

    def slope(_, state):
        angles, rates = state[:links], state[links:]
        gap = angles[:, None] - angles[None, :]
        force = net - (B * xp.sin(gap)) @ (rates * rates) - weight * xp.cos(angles)
        return xp.concat([rates, xp.linalg.solve(B * xp.cos(gap), force[:, None])[:, 0]])

    return slope, B


def f(xp, torques, angles, rates, masses, lengths, outward, target, duration, steps):
    slope, _ = motion_of(xp, masses, lengths, outward, torques)
    end = integrated(xp, slope, xp.concat([angles, rates]), 0.0, duration, steps)
    links = masses.shape[0]
    x = xp.sum(lengths * xp.cos(end[:links])) - target[0]
    y = xp.sum(lengths * xp.sin(end[:links])) - target[1]
    speeds = lengths * end[links:]
    return 0.5 * (x * x + y * y) + 0.05 * xp.sum(speeds * speeds)


def inputs(links, steps, rng):
    # The arm is 1 to 2 long. More links swing faster, like the waves of a chain: the time is shorter for them.
    return {
        "torques": rng.uniform(0.5, 1.5, links),
        "angles": rng.uniform(0.2, 1.0, links),
        "rates": rng.uniform(-0.5, 0.5, links),
        "masses": rng.uniform(1.0, 2.0, links),
        "lengths": rng.uniform(1.0, 2.0, links) / links,
        "outward": np.tril(np.ones((links, links))) - 0.5 * np.eye(links),
        "target": rng.uniform(0.5, 1.0, 2),
        "duration": 0.5 / links,
        "steps": steps,
    }


WRT = ("torques", "angles", "masses")

CASES = {
    "robot_arm": Case(
        f=f,
        inputs=lambda n, rng: inputs(n, 10, rng),
        wrt=WRT,
        sizes=(1, 2, 4, 8, 16, 32, 64),
        quick=(1, 3),
        flops=lambda n: 40 * (2 * n**3 / 3 + 11 * n**2),
        tags=("ode", "matrix", "linear-algebra", "loop", "science"),
        suites=("science",),
        summary="Where an arm of n links ends after 10 Runge-Kutta steps.",
    ),
    "robot_arm_rollout": Case(
        f=f,
        inputs=lambda n, rng: inputs(3, n, rng),
        wrt=WRT,
        sizes=(1, 10, 100, 1_000),
        quick=(1, 5),
        flops=lambda n: 550 * n + 100,
        tags=("ode", "linear-algebra", "loop", "science"),
        suites=("science",),
        summary="Where an arm of three links ends after n Runge-Kutta steps.",
    ),
}
