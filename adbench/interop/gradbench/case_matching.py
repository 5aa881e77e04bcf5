"""Cases that are also functions of gradbench, for all or some inputs: the messages, and how to read the answers.

linear_chain, particle and saddle are missing, because gradbench's have another start, value and function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from adbench.interop.gradbench import hand_tracking_input
from adbench.interop.gradbench.inputs import Array
from adbench.model.errors import Unsupported

Inputs = Mapping[str, Any]


@dataclass(frozen=True)
class Match:
    """A case as a module.

    input       the case's inputs by name -> the message's input; raises Unsupported for inputs that gradbench lacks
    operators   operator -> the module's function, and how to read its output: (output, inputs) -> a value, or the
                derivative in each active input by name
    """

    module: str
    input: Callable[[Inputs], dict[str, Any]]
    operators: Mapping[str, tuple[str, Callable[[Any, Inputs], Any]]]


def _numbers(output: Any, shape: tuple[int, ...] | None = None) -> Array:
    numbers = np.array(output, dtype=np.float64)
    return numbers if shape is None else numbers.reshape(shape)


def _value(output: Any, _: Inputs) -> Array:
    return _numbers(output)


def _gmm(inputs: Inputs) -> dict[str, Any]:
    x, alpha = inputs["x"], inputs["alpha"]
    arrays = {name: inputs[name].tolist() for name in ("x", "alpha", "mu", "q", "l")}
    sizes = {"d": x.shape[1], "k": alpha.size, "n": x.shape[0]}
    return {**sizes, **arrays, "m": int(inputs["m"]), "gamma": float(inputs["gamma"])}


def _gmm_gradient(output: Any, inputs: Inputs) -> dict[str, Array]:
    # JSON loses the shape of empty components below the diagonal: [[], []].
    return {name: _numbers(output[name], inputs[name].shape) for name in ("alpha", "mu", "q", "l")}


def _ba(inputs: Inputs) -> dict[str, Any]:
    if len(inputs["weights"]) != 1:
        raise Unsupported("gradbench repeats one observation; use size 1")
    one = {name: inputs[name][0].tolist() for name in ("cameras", "points", "features")}
    sizes = {"n": 1, "m": 1, "p": 1}
    return {
        **sizes,
        "cam": one["cameras"],
        "x": one["points"],
        "feat": one["features"],
        "w": float(inputs["weights"][0]),
    }


def _ba_value(output: Any, _: Inputs) -> Array:
    return _numbers([[*output["reproj_error"]["elements"], output["w_err"]["element"]]])


def _ba_jacobian(output: Any, _: Inputs) -> dict[str, Array]:
    """A tool sends all thirty-one numbers of one observation."""
    values = _numbers(output["vals"], (31,))
    rows = np.zeros((3, 15))
    rows[0], rows[1], rows[2, 14] = values[:15], values[15:30], values[30]
    by = {"cameras": rows[:, :11], "points": rows[:, 11:14], "weights": rows[:, 14:]}
    return {name: part.reshape((1, 3, 1, -1) if name != "weights" else (1, 3, 1)) for name, part in by.items()}


def _lstm(inputs: Inputs) -> dict[str, Any]:
    layers, _, _, width = inputs["main"].shape
    state = np.stack([inputs["hidden"], inputs["memory"]], axis=1).reshape(2 * layers, width)
    return {
        "main_params": inputs["main"].reshape(2 * layers, 4 * width).tolist(),
        "extra_params": inputs["extra"].tolist(),
        "state": state.tolist(),
        "sequence": inputs["frames"].tolist(),
    }


def _lstm_gradient(output: Any, inputs: Inputs) -> dict[str, Array]:
    main, extra = inputs["main"], inputs["extra"]
    numbers = _numbers(output, (main.size + extra.size,))
    return {"main": numbers[: main.size].reshape(main.shape), "extra": numbers[main.size :].reshape(extra.shape)}


def _affine(turns: Array, shifts: Array) -> Array:
    matrices = np.tile(np.eye(4), (*turns.shape[:-2], 1, 1))
    matrices[..., :3, :3], matrices[..., :3, 3] = turns, shifts
    return matrices


def _ht(inputs: Inputs) -> dict[str, Any]:
    """The case's sixteen bones among gradbench's twenty-two: the others are fixed and carry no vertex."""
    skeleton, rest, points = inputs["skeleton"], inputs["rest"], inputs["points"]
    bones, moving = 22, hand_tracking_input.MOVING
    base, inverse = np.tile(np.eye(4), (bones, 1, 1)), np.tile(np.eye(4), (bones, 1, 1))
    base[0] = _affine(skeleton["wrist_turn"], skeleton["wrist_shift"])
    base[moving[1:]] = _affine(skeleton["turn"], skeleton["shift"]).reshape(15, 4, 4)
    inverse[moving] = _affine(skeleton["rest_turn_inverse"], skeleton["rest_shift_inverse"])
    weights = np.zeros((len(rest), bones))
    weights[:, moving] = inputs["weights"]
    triangles = [[i, i + 1, i + 2] for i in range(len(rest) - 2)]
    model = hand_tracking_input.model_of(base, inverse, rest, weights, triangles)
    data = {"model": model, "correspondences": list(range(len(points))), "points": points.tolist()}
    return {"theta": inputs["theta"].tolist(), "data": data, "us": inputs["u"].tolist() if "u" in inputs else []}


def _ht_jacobian(output: Any, inputs: Inputs) -> dict[str, Array]:
    n, with_u = len(inputs["points"]), "u" in inputs
    rows = _numbers(output, (3 * n, 28 if with_u else 26))
    blocks: dict[str, Array] = {"theta": rows[:, -26:].reshape(n, 3, 26)}
    if with_u:
        by_u = np.zeros((n, 3, n, 2))
        by_u[np.arange(n), :, np.arange(n)] = rows[:, :2].reshape(n, 3, 2)
        blocks["u"] = by_u
    return blocks


def _llsq(inputs: Inputs) -> dict[str, Any]:
    t = inputs["t"]
    if not np.allclose(t, np.linspace(-1, 1, t.size)) or np.any(inputs["s"] != np.sign(t)):
        raise Unsupported("gradbench's points go from -1 to 1 in equal steps; these do not")
    return {"x": inputs["x"].tolist(), "n": t.size}


def _in(name: str) -> Callable[[Any, Inputs], dict[str, Array]]:
    return lambda output, inputs: {name: _numbers(output, inputs[name].shape)}


def _reshaped(output: Any, inputs: Inputs) -> Array:
    return _numbers(output, inputs["points"].shape)


_HAND = Match("ht", _ht, {"value": ("objective", _reshaped), "jacobian": ("jacobian", _ht_jacobian)})

MATCHES: Mapping[str, Match] = {
    "gaussian_mixture": Match("gmm", _gmm, {"value": ("objective", _value), "gradient": ("jacobian", _gmm_gradient)}),
    "bundle_adjustment": Match("ba", _ba, {"value": ("objective", _ba_value), "jacobian": ("jacobian", _ba_jacobian)}),
    "lstm": Match("lstm", _lstm, {"value": ("objective", _value), "gradient": ("jacobian", _lstm_gradient)}),
    "hand_tracking_simple": _HAND,
    "hand_tracking_complicated": _HAND,
    "determinant_by_minors": Match(
        "det",
        lambda inputs: {"A": inputs["A"].ravel().tolist(), "ell": len(inputs["A"])},
        {"value": ("primal", _value), "gradient": ("gradient", _in("A"))},
    ),
    "log_sum_exp": Match(
        "lse",
        lambda inputs: {"x": inputs["x"].tolist()},
        {"value": ("primal", _value), "gradient": ("gradient", _in("x"))},
    ),
    "least_squares_polynomial": Match("llsq", _llsq, {"value": ("primal", _value), "gradient": ("gradient", _in("x"))}),
    # gradbench's derivative is Newton's step, which is not an operator of adbench.
    "kmeans": Match(
        "kmeans",
        lambda inputs: {name: inputs[name].tolist() for name in ("points", "centroids")},
        {"value": ("cost", _value)},
    ),
}
