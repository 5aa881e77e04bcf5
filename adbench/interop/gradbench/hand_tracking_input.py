"""gradbench's hand, with any number of bones of which fifteen turn, as inputs of the case.

A bone that does not turn has a fixed position: bones between the wrist and a finger's first joint become part of that
joint's position relative to the wrist; the others' transformations are constants.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from adbench.interop.gradbench.inputs import Array, BadInput, array, indices, integer, part
from adbench.interop.gradbench.work import CaseWork, case, case_module
from adbench.model import tree

FINGERS, JOINTS, THETA = 5, 3, 26
TURNING = [[2 + 4 * finger + joint for finger in range(FINGERS)] for joint in range(JOINTS)]
"""The turning bones, joint by joint: the last three of each finger's four; bone 0 is the wrist."""

MOVING = [0, *(bone for joint in TURNING for bone in joint)]
"""The wrist and the turning bones, in the order of the case."""

LEAST_ANGLE = 1e-4  # gradbench's tools ignore smaller rotations


def objective(data: Any) -> CaseWork:
    """The three errors of each point, one after the other."""
    return replace(_hand(data), output=lambda errors: np.ravel(errors).tolist())


def jacobian(data: Any) -> CaseWork:
    """A row for each error: by u of its point, if any, then by theta."""
    return replace(_hand(data), operators=("jacobian",), output=rows)


def rows(parts: tuple[Any, ...]) -> Any:
    """The Jacobian's rows, from its parts for theta and, if any, for u."""
    by_theta = np.reshape(tree.dense(parts[0]), (-1, THETA))
    if len(parts) == 1:
        return by_theta.tolist()
    n = len(by_theta) // 3
    by_u = np.reshape(tree.dense(parts[1]), (n, 3, n, 2))[np.arange(n), :, np.arange(n)]
    return np.concatenate([by_u.reshape(3 * n, 2), by_theta], axis=1).tolist()


def _hand(data: Any) -> CaseWork:
    theta, observed, model = array(data, "theta", THETA), part(data, "data"), part(part(data, "data"), "model")
    if not np.linalg.norm(theta[:3]) >= LEAST_ANGLE:
        raise BadInput(f"theta must turn the hand by at least {LEAST_ANGLE}; gradbench treats less as a constant")
    skeleton, fixed, order = _skeleton(model)
    positions = array(model, "base_positions", None, 4)
    if not np.all(positions[:, 3] == 1):
        raise BadInput("each of base_positions must end in 1")
    weights = array(model, "weights", len(positions), len(order))[:, order]
    points = array(observed, "points", None, 3)
    u = array(data, "us", None, 2) if part(data, "us") else None
    triangles = array(model, "triangles", None, 3) if u is not None else None
    below = len(positions if triangles is None else triangles)
    corners = indices(array(observed, "correspondences", None), "correspondences", below)
    if len(corners) != len(points) or (u is not None and len(u) != len(points)) or not len(points):
        raise BadInput(f"correspondences, points and us must have the same length; points has {len(points)}")
    if not isinstance(part(model, "is_mirrored"), bool):
        raise BadInput("is_mirrored must be true or false")
    parts = case_module("hand_tracking_simple")
    mirror = np.array([[-1.0 if part(model, "is_mirrored") else 1.0], [1.0], [1.0]])
    inputs: dict[str, Any] = {"skeleton": skeleton, "fixed": fixed, "rest": positions[:, :3].copy()}
    inputs |= {"weights": weights, "points": points}

    def vertices(xp: Any, theta: Any, skeleton: Any, fixed: Any, rest: Any, weights: Any) -> Any:
        turns, shifts = parts.bones(xp, theta, skeleton)
        turns, shifts = xp.concat([turns, fixed["turn"]]), xp.concat([shifts, fixed["shift"]])
        if mirror[0, 0] < 0:
            turns, shifts = turns * fixed["mirror"], shifts * fixed["mirror"][:, 0]
        return parts.skinned(xp, theta, turns, shifts, rest, weights)

    def simple(xp: Any, theta: Any, points: Any, **of_hand: Any) -> Any:
        return points - vertices(xp, theta, **of_hand)[corners]

    fixed["mirror"] = mirror
    if u is None or triangles is None:
        return CaseWork(case("hand_tracking_simple", f=simple), {"theta": theta, **inputs}, size=len(points))
    a, b, c = indices(triangles[corners], "triangles", len(positions)).T

    def complicated(xp: Any, theta: Any, u: Any, points: Any, **of_hand: Any) -> Any:
        v = vertices(xp, theta, **of_hand)
        return points - parts.on_triangles(u, v[a], v[b], v[c])

    changed = case("hand_tracking_complicated", f=complicated)
    return CaseWork(changed, {"theta": theta, "u": u, **inputs}, size=len(points))


def _skeleton(model: Any) -> tuple[dict[str, Any], dict[str, Any], list[int]]:
    """The case's skeleton, the transformations of the fixed bones, and the order of bones in both."""
    bones = integer(model, "bone_count", 4 * FINGERS + 1, 1000)
    parent = _parents(model, bones)
    base = _affine(array(model, "base_relatives", bones, 4, 4), "base_relatives")
    inverse = _affine(array(model, "inverse_base_absolutes", bones, 4, 4), "inverse_base_absolutes")
    still = [bone for bone in range(bones) if bone not in MOVING]
    absolute: dict[int, Array] = {0: np.eye(4)}  # relative to the wrist
    for bone in still:
        if parent[bone] not in absolute:
            raise BadInput(f"bone {bone} does not turn, so its parent must not either; parents has {parent[bone]}")
        absolute[bone] = absolute[parent[bone]] @ base[bone]
    for joint in range(JOINTS):
        for bone in TURNING[joint]:
            if joint and parent[bone] != bone - 1:
                raise BadInput(f"bone {bone} must hang on bone {bone - 1}; parents has {parent[bone]}")
            if not joint and parent[bone] not in absolute:
                raise BadInput(f"bone {bone} must hang on a bone that does not turn; parents has {parent[bone]}")
    first = [absolute[parent[bone]] @ base[bone] for bone in TURNING[0]]
    relative = np.array([first, *(base[joint] for joint in TURNING[1:])])
    skeleton = {
        "wrist_turn": base[0, :3, :3].copy(),
        "wrist_shift": base[0, :3, 3].copy(),
        "turn": relative[..., :3, :3].copy(),
        "shift": relative[..., :3, 3].copy(),
        "rest_turn_inverse": inverse[MOVING, :3, :3].copy(),
        "rest_shift_inverse": inverse[MOVING, :3, 3].copy(),
    }
    places = np.array([base[0] @ absolute[bone] @ inverse[bone] for bone in still]).reshape(-1, 4, 4)
    fixed = {"turn": places[:, :3, :3].copy(), "shift": places[:, :3, 3].copy()}
    return skeleton, fixed, MOVING + still


def _parents(model: Mapping[str, Any], bones: int) -> list[int]:
    numbers = array(model, "parents", bones)
    parents = [int(parent) for parent in numbers]
    if parents[0] != -1 or any(not 0 <= parent < bone for bone, parent in enumerate(parents) if bone):
        raise BadInput("parents must be -1 for the wrist, bone 0, and an earlier bone for each other bone")
    return parents


def _affine(matrices: Array, name: str) -> Array:
    if not np.all(matrices[:, 3] == [0, 0, 0, 1]):
        raise BadInput(f"{name} must be matrices whose last row is 0 0 0 1")
    return matrices


def model_of(base: Array, inverse: Array, rest: Array, weights: Array, triangles: list[list[int]]) -> dict[str, Any]:
    """The model of a message: a hand whose fingers start at the wrist, bone after bone.

    base, inverse   of each bone, 4 × 4: the transformation relative to its parent, and the inverse of the absolute one
    rest, weights   of each vertex: its rest position, and each bone's share
    """
    bones = range(len(base))
    return {
        "bone_count": len(bones),
        "bone_names": [f"bone{bone}" for bone in bones],
        "parents": [-1 if bone == 0 else 0 if bone % 4 == 1 else bone - 1 for bone in bones],
        "base_relatives": base.tolist(),
        "inverse_base_absolutes": inverse.tolist(),
        "base_positions": np.c_[rest, np.ones(len(rest))].tolist(),
        "weights": weights.tolist(),
        "triangles": triangles,
        "is_mirrored": False,
    }
