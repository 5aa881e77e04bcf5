"""gradbench's twelve modules, computed from cases: the work of each function at an input, and the form of its output.

JSON writes a vector as a list and a matrix as a list of rows. Derivatives are the backend's operators, or fallbacks.
Definitions: `evals/*/README.md` of gradbench, and the source of its tools for open questions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np

from adbench.interop.gradbench import hand_tracking_input, nested_derivatives
from adbench.interop.gradbench.case_matching import MATCHES
from adbench.interop.gradbench.determinant_by_arrays import determinant
from adbench.interop.gradbench.inputs import Array, BadInput, affordable, array, integer, number, part, vector
from adbench.interop.gradbench.work import CaseWork, Work, case, case_module, number_of
from adbench.model.case import Case
from adbench.optional import library

PARAMETERS = 11  # of a camera


@dataclass(frozen=True)
class GradbenchModule:
    """A module.

    functions   name -> from an input to the work
    small       an input for `define`, or the name and the size of a case that has one
    """

    functions: Mapping[str, Callable[[Any], Work]]
    small: Any

    @property
    def sample(self) -> Any:
        """The small input."""
        match self.small:
            case str(name), int(size):
                return MATCHES[name].input(case(name).inputs(size, np.random.default_rng(0)))
        return self.small


def _list(value: Any) -> Any:
    return np.asarray(value, dtype=np.float64).tolist()


def _flat(value: Any) -> Any:
    return np.asarray(value, dtype=np.float64).ravel().tolist()


def _value_and(
    derivative: str, made: Callable[[Any], CaseWork], output: Callable[..., Any], value: str = "objective"
) -> Mapping[str, Callable[[Any], Work]]:
    """The two functions of a module: the case's value, and its gradient in the form of `output(gradient, data)`."""

    def gradient(data: Any) -> Work:
        return replace(made(data), operators=("gradient",), output=lambda result: output(result, data))

    return {value: made, derivative: gradient}


HELLO = Case(
    f=lambda xp, x: x * x,
    inputs=lambda n, rng: {"x": 3.0},
    wrt=("x",),
    sizes=(1,),
    gradient=lambda x: (2 * x,),
    name="hello",
    file=__file__,
)


def hello(data: Any) -> CaseWork:
    """x², which is not a built-in case; its C++ implementation is next to this file."""
    return CaseWork(HELLO, {"x": number(data, "the input")})


def gmm(data: Any) -> CaseWork:
    """The unchanged case: L + P. `l` is one list by columns, or d rows below the diagonal."""
    d, k, n = (integer(data, name, 1, 10**6) for name in ("d", "k", "n"))
    gamma = number(part(data, "gamma"), "gamma")
    if gamma <= 0:
        raise BadInput(f"gamma must be greater than 0; it is {gamma}")
    inputs = {
        "x": array(data, "x", n, d),
        "alpha": array(data, "alpha", k),
        "mu": array(data, "mu", k, d),
        "q": array(data, "q", k, d),
        "l": lower(data, k, d),
        "gamma": gamma,
        "m": integer(data, "m", 0, 10**9),
    }
    return CaseWork(case("gaussian_mixture"), inputs)


def is_by_rows(data: Any) -> bool:
    """Whether `l` has a list for each row below the diagonal of each component, the first one empty."""
    l = part(data, "l")  # noqa: E741 - the publication's symbol
    return isinstance(l, list) and bool(l) and isinstance(l[0], list) and bool(l[0]) and isinstance(l[0][0], list)


def lower(data: Any, k: int, d: int) -> Array:
    """`l` by columns, of shape (k, d (d - 1) / 2), from either form."""
    if not is_by_rows(data):
        return array(data, "l", k, d * (d - 1) // 2)
    rows = part(data, "l")
    if len(rows) != k or any(not isinstance(of_one, list) or len(of_one) != d for of_one in rows):
        raise BadInput(f"l must have {d} rows for each of {k} components")
    if any(not isinstance(row, list) or len(row) != i for of_one in rows for i, row in enumerate(of_one)):
        raise BadInput("l must have i numbers in row i, counted from 0")
    return array({"l": [[of_one[i][j] for j in range(d) for i in range(j + 1, d)] for of_one in rows]}, "l", k, None)


def gmm_jacobian(gradient: tuple[Array, ...], data: Any) -> dict[str, Any]:
    """{alpha, mu, q, l}, with `l` in the form of the input."""
    alpha, mu, q, l = map(_list, gradient)  # noqa: E741 - see above
    if is_by_rows(data):
        d = len(mu[0])
        starts = [0, *accumulate(range(d - 1, 0, -1))]
        l = [[[of_one[starts[j] + i - j - 1] for j in range(i)] for i in range(d)] for of_one in l]  # noqa: E741
    return {"alpha": alpha, "mu": mu, "q": q, "l": l}


def ba(data: Any) -> CaseWork:
    """p observations, cycling through n copies of a camera and m copies of a point."""
    n, m, p = (integer(data, name, 1, 10**8) for name in ("n", "m", "p"))
    affordable("the cameras, points and observations", PARAMETERS * n + 3 * m + 33 * p)
    camera, point = array(data, "cam", PARAMETERS), array(data, "x", 3)
    if not camera[:3].any():
        raise BadInput("cam must turn by a nonzero angle, because Rodrigues' formula divides by it")
    of_camera, of_point, parts = np.arange(p) % n, np.arange(p) % m, case_module("bundle_adjustment")

    def f(xp: Any, cameras: Any, points: Any, weights: Any, features: Any) -> Any:
        return parts.errors(xp, cameras[of_camera], points[of_point], weights[:, None], features)

    inputs = {
        "cameras": np.tile(camera, (n, 1)),
        "points": np.tile(point, (m, 1)),
        "weights": np.full(p, number(part(data, "w"), "w")),
        "features": np.tile(array(data, "feat", 2), (p, 1)),
    }
    changed = case("bundle_adjustment", f=f, sparsity=lambda _: parts.pattern(n, m, of_camera, of_point))
    return CaseWork(changed, inputs, output=ba_objective, size=p)


def ba_objective(errors: Array) -> dict[str, Any]:
    """The first observation's errors, and the number of copies."""
    return {
        "reproj_error": {"elements": _list(errors[0, :2]), "repeated": len(errors)},
        "w_err": {"element": float(errors[0, 2]), "repeated": len(errors)},
    }


def ba_jacobian(parts: tuple[Any, ...]) -> dict[str, Any]:
    """Compressed rows, first all errors e and then all e_w; the first thirty entries and the last of each list."""
    sparse = library("scipy.sparse", "ba")
    p = parts[2].shape[-1]
    blocks = [leaf if hasattr(leaf, "tocsr") else sparse.csr_array(np.reshape(leaf, (3 * p, -1))) for leaf in parts]
    matrix = sparse.csr_array(sparse.hstack(blocks))
    order = np.concatenate([np.delete(np.arange(3 * p), slice(2, None, 3)), np.arange(2, 3 * p, 3)])
    matrix = sparse.csr_array(matrix[order])
    matrix.sort_indices()
    lists = {"rows": matrix.indptr, "cols": matrix.indices, "vals": matrix.data}
    return {name: [*values[:30].tolist(), values[-1].item()] for name, values in lists.items()}


def lstm(data: Any) -> CaseWork:
    """Two rows of parameters for each layer: the weights of its four gates one after the other, and the offsets."""
    main = array(data, "main_params", None, None)
    layers, width = main.shape[0] // 2, main.shape[1] // 4
    if not layers or not width or main.shape != (2 * layers, 4 * width):
        raise BadInput(
            f"main_params must have two rows for each layer, of four parts; got {main.shape[0]} × {main.shape[1]}"
        )
    frames, state = array(data, "sequence", None, width), array(data, "state", 2 * layers, width)
    if len(frames) < 2:
        raise BadInput(f"sequence must have at least two frames; got {len(frames)}")
    inputs = {
        "main": main.reshape(layers, 2, 4, width),
        "extra": array(data, "extra_params", 3, width),
        "hidden": state[0::2].copy(),
        "memory": state[1::2].copy(),
        "frames": frames,
    }
    return CaseWork(case("lstm"), inputs, size=len(frames) - 1)


def ode(data: Any, *, last: bool) -> CaseWork:
    """The case's equations from zero in s steps: the final state, or its last entry."""
    x, steps, solved = vector(data, "x"), integer(data, "s", 1, 10**9), case_module("linear_chain").solved
    inputs = {"x": x, "start": np.zeros_like(x), "steps": steps}

    def entry(xp: Any, x: Any, start: Any, steps: int) -> Any:
        return solved(xp, x, start, steps)[-1]

    if last:
        changed = case("linear_chain", f=entry, wrt=("x",), operators=("value", "gradient"))
        return CaseWork(changed, inputs, ("gradient",), lambda gradient: _list(gradient[0]))
    changed = case("linear_chain", f=solved, wrt=("x",), operators=("value", "jacobian"))
    return CaseWork(changed, inputs, output=_list)


def det(data: Any) -> CaseWork:
    """The case, with the matrix by rows, and a text that takes no longer to compile for a larger one."""
    ell = integer(data, "ell", 1, 30)
    # The name stays, because a C++ implementation and a gradient by hand are of the same function.
    changed = replace(case("determinant_by_minors"), f=determinant)
    return CaseWork(changed, {"A": array(data, "A", ell * ell).reshape(ell, ell)})


def lse(data: Any) -> CaseWork:
    """The unchanged case."""
    return CaseWork(case("log_sum_exp"), {"x": vector(data, "x")})


def llsq(data: Any) -> CaseWork:
    """The case with x's number of coefficients."""
    x, n = vector(data, "x"), integer(data, "n", 2)
    affordable("the points", n)
    t = -1 + np.arange(n) * 2 / (n - 1)
    return CaseWork(case("least_squares_polynomial"), {"x": x, "t": t, "s": np.sign(t)}, size=n)


def kmeans(data: Any) -> CaseWork:
    """The unchanged case."""
    points = array(data, "points", None, None)
    centroids = array(data, "centroids", None, points.shape[1])
    if not points.size or not len(centroids):
        raise BadInput("points and centroids must have at least one row each")
    affordable("the distances", points.size * len(centroids))
    return CaseWork(case("kmeans"), {"centroids": centroids, "points": points})


def kmeans_dir(data: Any) -> CaseWork:
    """Gradient over Hessian, which is diagonal: its product with ones is the diagonal."""
    work = kmeans(data)
    ones = (np.ones_like(work.inputs["centroids"]),)

    def step(gradient: tuple[Array], diagonal: tuple[Array]) -> Any:
        if not np.all(diagonal[0]):
            raise BadInput("a centroid is nearest to no point, so the Hessian has no inverse")
        return _list(gradient[0] / diagonal[0])

    return replace(work, operators=("gradient", "hvp"), output=step, vectors=(ones,))


MODULES: Mapping[str, GradbenchModule] = {
    "hello": GradbenchModule(_value_and("double", hello, lambda gradient, _: number_of(gradient[0]), "square"), 3.0),
    "gmm": GradbenchModule(_value_and("jacobian", gmm, gmm_jacobian), ("gaussian_mixture", 1)),
    "ba": GradbenchModule(
        {"objective": ba, "jacobian": lambda data: replace(ba(data), operators=("jacobian",), output=ba_jacobian)},
        ("bundle_adjustment", 1),
    ),
    "lstm": GradbenchModule(
        _value_and("jacobian", lstm, lambda gradient, _: _flat(gradient[0]) + _flat(gradient[1])),
        ("lstm", 1),
    ),
    "ht": GradbenchModule(
        {"objective": hand_tracking_input.objective, "jacobian": hand_tracking_input.jacobian},
        ("hand_tracking_simple", 1),
    ),
    "ode": GradbenchModule(
        {"primal": lambda data: ode(data, last=False), "gradient": lambda data: ode(data, last=True)},
        {"x": [0.5, -1.0, 2.0], "s": 2},
    ),
    "det": GradbenchModule(
        _value_and("gradient", det, lambda gradient, _: _flat(gradient[0]), "primal"),
        ("determinant_by_minors", 2),
    ),
    "lse": GradbenchModule(
        _value_and("gradient", lse, lambda gradient, _: _list(gradient[0]), "primal"), ("log_sum_exp", 3)
    ),
    "llsq": GradbenchModule(
        _value_and("gradient", llsq, lambda gradient, _: _list(gradient[0]), "primal"), ("least_squares_polynomial", 4)
    ),
    "kmeans": GradbenchModule(
        {"cost": kmeans, "dir": kmeans_dir}, {"points": [[0.0], [0.1], [1.0]], "centroids": [[0.2], [0.9]]}
    ),
    "particle": GradbenchModule({m: nested_derivatives.particle(m) for m in nested_derivatives.MODES}, {"w": 0.20719}),
    "saddle": GradbenchModule(
        {m: nested_derivatives.saddle(m) for m in nested_derivatives.MODES}, {"start": [1e-6, 1e-6]}
    ),
}
