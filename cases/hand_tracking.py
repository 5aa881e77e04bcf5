"""Distances of n points from a hand with sixteen bones and a skin, posed by 26 numbers.

    T_b = A_b A⁰_b⁻¹,   A_b = A_parent(b) B_b [R_z(spread) R_x(flex) | 0]
    v_i = R(r) Σ_b w_ib T_b v⁰_i + t

    hand_tracking_simple        in θ:         e_i = point_i - v_i
    hand_tracking_complicated   in θ and u:   e_i = point_i - (u_i0 v_i + u_i1 v_(i+1) + (1 - u_i0 - u_i1) v_(i+2))

θ = (r, t, and for each of five fingers flexion and spread of its first joint and the flexions of the two others). B is
a bone's rest position relative to its parent, A⁰ the absolute one, w the weights of the skin. The value has three
numbers per point. The Jacobian in θ is dense; in u each point has a 3 × 2 block.

Taylor et al. (2014), "User-specific hand modeling from monocular depth sequences"; Šrajer, Kukelova and Fitzgibbon
(2018), arXiv:1807.10129. The bones are random.
"""

import numpy as np

from adbench import Case

from ._special import rotation

FINGERS, JOINTS, THETA = 5, 3, 26


def joints(xp, spread, flex):
    """R_z(spread) R_x(flex) for every finger, of shape (5, 3, 3)."""
    cz, sz, cx, sx = xp.cos(spread), xp.sin(spread), xp.cos(flex), xp.sin(flex)
    zero = xp.zeros_like(cz)
    rows = [[cz, -sz * cx, sz * sx], [sz, cz * cx, -cz * sx], [zero, sx, cx]]
    return xp.stack([xp.stack(row, axis=-1) for row in rows], axis=-2)


def bones(xp, theta, skeleton):
    """Rotation and translation of every bone from rest: (16, 3, 3) and (16, 3)."""
    angles = xp.reshape(theta[6:], (FINGERS, JOINTS + 1))
    spreads = (angles[:, 1], xp.zeros_like(angles[:, 1]), xp.zeros_like(angles[:, 1]))
    flexes = (angles[:, 0], angles[:, 2], angles[:, 3])
    turns, shifts = [skeleton["wrist_turn"][None]], [skeleton["wrist_shift"][None]]
    turn, shift = turns[0], shifts[0]
    for joint in range(JOINTS):
        shift = (turn @ skeleton["shift"][joint][:, :, None])[:, :, 0] + shift
        turn = turn @ skeleton["turn"][joint] @ joints(xp, spreads[joint], flexes[joint])
        turns.append(turn)
        shifts.append(shift)
    turns, shifts = xp.concat(turns), xp.concat(shifts)
    moved = turns @ skeleton["rest_turn_inverse"]
    return moved, shifts + (turns @ skeleton["rest_shift_inverse"][:, :, None])[:, :, 0]


def vertices(xp, theta, skeleton, rest, weights):
    turns, shifts = bones(xp, theta, skeleton)
    return skinned(xp, theta, turns, shifts, rest, weights)


def skinned(xp, theta, turns, shifts, rest, weights):
    """The vertices for these bone rotations and translations, with the global rotation and translation."""
    by_bone = xp.matrix_transpose(turns @ xp.matrix_transpose(rest)) + shifts[:, None, :]
    posed = xp.sum(xp.matrix_transpose(weights)[:, :, None] * by_bone, axis=0)
    return posed @ xp.matrix_transpose(rotation(xp, theta[:3])) + theta[3:6]


def simple(xp, theta, skeleton, rest, weights, points):
    return points - vertices(xp, theta, skeleton, rest, weights)


def complicated(xp, theta, u, skeleton, rest, weights, points):
    v = vertices(xp, theta, skeleton, rest, weights)
    return points - on_triangles(u, v[:-2], v[1:-1], v[2:])


def on_triangles(u, a, b, c):
    """The point with coordinates u on each triangle with these corners."""
    first, second = u[:, :1], u[:, 1:]
    return first * a + second * b + (1 - first - second) * c


def random_turns(shape, rng):
    """Rotation matrices, uniformly distributed."""
    q, r = np.linalg.qr(rng.normal(size=(*shape, 3, 3)))
    q = q * np.sign(np.einsum("...ii->...i", r))[..., None, :]
    return q * np.linalg.det(q)[..., None, None]


def random_skeleton(rng):
    turn, shift = random_turns((JOINTS, FINGERS), rng), rng.normal(0, 0.5, (JOINTS, FINGERS, 3))
    rest_turn, rest_shift = random_turns((1 + JOINTS * FINGERS,), rng), rng.normal(0, 0.5, (1 + JOINTS * FINGERS, 3))
    inverse = rest_turn.transpose(0, 2, 1)
    return {
        "wrist_turn": random_turns((), rng),
        "wrist_shift": rng.normal(0, 0.5, 3),
        "turn": turn,
        "shift": shift,
        "rest_turn_inverse": inverse,
        "rest_shift_inverse": -np.einsum("bij,bj->bi", inverse, rest_shift),
    }


def inputs(n, rng, spare):
    skeleton = random_skeleton(rng)
    weights = rng.dirichlet(np.full(1 + JOINTS * FINGERS, 0.5), n + spare)
    return {
        "theta": rng.uniform(0.2, 1.0, THETA),
        **({"u": rng.uniform(0.1, 0.5, (n, 2))} if spare else {}),
        "skeleton": skeleton,
        "rest": rng.normal(size=(n + spare, 3)),
        "weights": weights,
        "points": rng.normal(size=(n, 3)),
    }


def sparsity(n):
    rows = np.arange(3 * n)
    of_theta = np.repeat(rows, THETA), np.tile(np.arange(THETA), rows.size)
    of_u = np.repeat(rows, 2), THETA + (2 * (rows // 3)[:, None] + np.arange(2)).ravel()
    return tuple(np.concatenate(part) for part in zip(of_theta, of_u, strict=True))


CASES = {
    "hand_tracking_simple": Case(
        f=simple,
        inputs=lambda n, rng: inputs(n, rng, 0),
        wrt=("theta",),
        sizes=(1, 10, 100, 1_000),
        quick=(3,),
        operators=("value", "jacobian"),
        flops=lambda n: 3_500 + 16 * 24 * n + 24 * n,
        tags=("array-valued",),
        suites=("adbench", "gradbench", "ablations"),
        summary="Distances of n points from the vertices of a posed hand.",
    ),
    "hand_tracking_complicated": Case(
        f=complicated,
        inputs=lambda n, rng: inputs(n, rng, 2),
        wrt=("theta", "u"),
        sizes=(1, 10, 100, 1_000),
        quick=(3,),
        operators=("value", "jacobian"),
        sparsity=sparsity,
        flops=lambda n: 3_500 + 16 * 24 * (n + 2) + 42 * n,
        tags=("array-valued", "sparse"),
        suites=("adbench", "gradbench"),
        summary="Distances of n points from points on the triangles of a posed hand.",
    ),
}
