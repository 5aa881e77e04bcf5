"""Every function of gradbench's modules, compared with values computed without adbench's cases."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adbench import Namespace, Unsupported, tape
from adbench.catalog.discovery import catalog, load
from adbench.interop.gradbench.determinant_by_arrays import determinant
from adbench.interop.gradbench.modules import MODULES
from adbench.interop.gradbench.nested_derivatives import MODES, argmin, refuse_wrong_nest
from adbench.interop.gradbench.tool import Tool
from adbench.model.backend import from_module
from adbench.model.case import function_of
from tests.interop import inputs
from tests.interop.inputs import slopes

Ask = Callable[..., dict[str, Any]]


def tool(backend: str) -> Tool:
    return Tool(from_module(backend, load(catalog().backends[backend])))


def asking(used: Tool) -> Ask:
    def ask(module: str, function: str | None = None, data: Any = None) -> dict[str, Any]:
        message = {"id": 7, "kind": "define" if function is None else "evaluate", "module": module}
        if function is not None:
            message |= {"function": function, "input": data}
        answer: dict[str, Any] = json.loads(used.answered(json.dumps(message).encode()))
        assert answer["id"] == 7
        return answer

    return ask


@pytest.fixture(scope="module", params=["tape"])
def ask(request: pytest.FixtureRequest) -> Ask:
    return asking(tool(request.param))


def output(ask: Ask, module: str, function: str, data: Any) -> Any:
    answer = ask(module, function, data)
    assert answer.get("error") is None
    assert sum(timing["name"] == "evaluate" for timing in answer["timings"]) >= 1
    return answer["output"]


def near(found: Any, truth: Any) -> None:
    np.testing.assert_allclose(np.array(found, dtype=float), np.array(truth, dtype=float), rtol=1e-7, atol=1e-8)


def test_hello(ask: Ask) -> None:
    assert output(ask, "hello", "square", 3.5) == 12.25
    assert output(ask, "hello", "double", 12.25) == 24.5


def test_gmm_is_the_likelihood_with_the_prior(ask: Ask) -> None:
    data = inputs.gmm_input()
    near(output(ask, "gmm", "objective", data), inputs.gmm(data))
    found = output(ask, "gmm", "jacobian", data)
    assert set(found) == {"alpha", "mu", "q", "l"}
    for name, part in found.items():
        near(part, slopes(lambda x, name=name: inputs.gmm({**data, name: x}), data[name]))


def test_gmm_accepts_rows_below_the_diagonal_and_answers_in_that_form(ask: Ask) -> None:
    data = inputs.gmm_input()
    rows = [[[], [by_columns[0]], [by_columns[1], by_columns[2]]] for by_columns in data["l"]]
    near(output(ask, "gmm", "objective", {**data, "l": rows}), inputs.gmm(data))
    by_columns = output(ask, "gmm", "jacobian", data)["l"]
    assert output(ask, "gmm", "jacobian", {**data, "l": rows})["l"] == [[[], [a], [b, c]] for a, b, c in by_columns]


def test_ba_gives_the_first_thirty_entries_and_the_last(ask: Ask) -> None:
    data = inputs.ba_input()
    cam, x, w, feat = (data[name] for name in ("cam", "x", "w", "feat"))
    error = inputs.reprojection(np.array(cam), x, w, feat)
    found = output(ask, "ba", "objective", data)
    near(found["reproj_error"]["elements"], error)
    near(found["w_err"]["element"], 1 - w**2)
    assert found["reproj_error"]["repeated"] == found["w_err"]["repeated"] == data["p"]
    by = [
        slopes(lambda c: inputs.reprojection(c, x, w, feat), cam),
        slopes(lambda y: inputs.reprojection(np.array(cam), y, w, feat), x),
        slopes(lambda v: inputs.reprojection(np.array(cam), x, v, feat), w)[:, None],
    ]
    row = np.concatenate(by, axis=1)
    jacobian = output(ask, "ba", "jacobian", data)
    near(jacobian["vals"], [*row.ravel(), -2 * w])
    columns = [*range(11), 22, 23, 24, 31]
    assert jacobian["cols"] == [*columns, *columns, 35]
    starts = [*range(0, 151, 15), *range(151, 156)]  # of ten rows with fifteen entries and five with one
    assert jacobian["rows"] == [*starts[:30], starts[-1]]


def test_lstm_with_any_number_of_layers(ask: Ask) -> None:
    data = inputs.lstm_input()
    near(output(ask, "lstm", "objective", data), inputs.lstm(data))
    parts = [
        slopes(lambda x, name=name: inputs.lstm({**data, name: x}), data[name]).ravel()
        for name in ("main_params", "extra_params")
    ]
    near(output(ask, "lstm", "jacobian", data), np.concatenate(parts))


@pytest.mark.parametrize("us", [False, True])
@pytest.mark.parametrize("mirrored", [False, True])
def test_ht_with_fixed_and_turning_bones(ask: Ask, us: bool, mirrored: bool) -> None:
    data = inputs.ht_input(us=us, mirrored=mirrored)
    near(output(ask, "ht", "objective", data), inputs.ht(data))
    truth = slopes(lambda theta: inputs.ht({**data, "theta": theta}), data["theta"])
    if us:
        by_u = slopes(lambda u: inputs.ht({**data, "us": u}), data["us"])
        own = [by_u[row, row // 3] for row in range(len(by_u))]
        truth = np.concatenate([own, truth], axis=1)
    near(output(ask, "ht", "jacobian", data), truth)


def test_ode_and_the_gradient_of_its_last_entry(ask: Ask) -> None:
    data = {"x": [0.5, 1.5, -0.7, 1.1], "s": 3}
    near(output(ask, "ode", "primal", data), inputs.ode(x=data["x"], steps=3))
    near(output(ask, "ode", "gradient", data), slopes(lambda x: inputs.ode(x, 3)[-1], data["x"]))


def test_det(ask: Ask) -> None:
    A = np.random.default_rng(4).normal(size=(4, 4))
    data = {"A": A.ravel().tolist(), "ell": 4}
    near(output(ask, "det", "primal", data), np.linalg.det(A))
    near(output(ask, "det", "gradient", data), (np.linalg.det(A) * np.linalg.inv(A).T).ravel())


@pytest.mark.parametrize("backend", ["tape", "tape_compiled", "autograd", "jax", "torch"])
@pytest.mark.parametrize("ell", [1, 5, 8])  # the recursion, arrays, and a loop over arrays
def test_det_of_each_form_of_the_program(backend: str, ell: int) -> None:
    A = np.random.default_rng(ell).random((ell, ell))
    data, ask = {"A": A.ravel().tolist(), "ell": ell}, asking(tool(backend))
    det = np.linalg.det(A)
    np.testing.assert_allclose(output(ask, "det", "primal", data), det, rtol=1e-11)
    np.testing.assert_allclose(output(ask, "det", "gradient", data), (det * np.linalg.inv(A).T).ravel(), rtol=1e-10)


def test_det_of_a_library_that_does_not_index_with_arrays() -> None:
    class Numbers:
        """A matrix of which only single elements and rows can be read."""

        def __init__(self, numbers: Any) -> None:
            self.numbers, self.shape = numbers, numbers.shape

        def __getitem__(self, index: Any) -> Any:
            if isinstance(index, np.ndarray):
                raise TypeError("an index must be an integer")
            found = self.numbers[index]
            return Numbers(found) if isinstance(found, np.ndarray) else found

    A = np.random.default_rng(7).normal(size=(5, 5))
    assert determinant(Namespace(np), Numbers(A)) == pytest.approx(np.linalg.det(A))


def test_a_fault_of_dets_arrays_is_not_hidden() -> None:
    class Faulty(Namespace):
        def concat(self, arrays: Any, axis: int = 0) -> Any:
            raise ValueError("a fault of the library")

    A = np.random.default_rng(7).normal(size=(5, 5))
    with pytest.raises(ValueError, match="a fault of the library"):
        determinant(Faulty(np), A)


def test_det_has_the_products_of_the_recursion_in_the_same_order() -> None:
    A = np.random.default_rng(7).normal(size=(6, 6))
    assert determinant(Namespace(np), A) == load(catalog().case_sources["determinant_by_minors"]).minor(
        A, 0, tuple(range(6))
    )


def test_the_program_of_det_grows_by_one_loop_for_each_row() -> None:
    jax = pytest.importorskip("jax")
    xp = load(catalog().backends["jax"]).xp

    def equations(n: int) -> int:
        made = jax.make_jaxpr(lambda A: determinant(xp, A))(np.eye(n))
        return str(made).count(" = ")

    of_a_row = equations(9) - equations(8)
    assert equations(11) - equations(10) == equations(10) - equations(9) == of_a_row < equations(7)


def test_a_compiling_backend_keeps_lstm_a_loop() -> None:
    """The program of 100 steps has the operations of the one of 1,000: its text reads the next frame."""
    case = catalog().cases["lstm"]

    def nodes(n: int) -> int:
        names, args, wrt = case.bind(n, 0)
        compiled = tape.compile(
            function_of(case, names, load(catalog().backends["tape_compiled"]).xp, n), *args, wrt=wrt
        )
        compiled(*args)
        return sum(p.nodes for s in compiled._signatures.values() for p in s.programs)

    assert 0 < nodes(1_000) == nodes(100)


def test_lse_of_large_numbers(ask: Ask) -> None:
    x = np.array([1000.0, 1000.5, 998.0])
    near(output(ask, "lse", "primal", {"x": x.tolist()}), np.logaddexp.reduce(x))
    near(output(ask, "lse", "gradient", {"x": x.tolist()}), np.exp(x - np.logaddexp.reduce(x)))


@pytest.mark.parametrize("coefficients", [1, 4])
def test_llsq_with_any_number_of_coefficients(ask: Ask, coefficients: int) -> None:
    x, n = np.random.default_rng(5).normal(size=coefficients), 7
    t = np.array([-1 + i * 2 / (n - 1) for i in range(n)])
    powers, s = np.vander(t, coefficients, increasing=True), np.sign(t)
    data = {"x": x.tolist(), "n": n}
    near(output(ask, "llsq", "primal", data), ((s - powers @ x) ** 2).sum() / 2)
    near(output(ask, "llsq", "gradient", data), -powers.T @ (s - powers @ x))


def test_kmeans_cost_and_the_step_to_the_means(ask: Ask) -> None:
    points = np.array([[0.0, 0.1], [0.2, -0.1], [3.0, 3.1], [2.9, 3.3], [3.2, 2.8]])
    centroids = np.array([[0.3, 0.3], [2.5, 2.5]])
    data = {"points": points.tolist(), "centroids": centroids.tolist()}
    near(output(ask, "kmeans", "cost", data), sum(min(((p - c) ** 2).sum() for c in centroids) for p in points))
    means = np.array([points[:2].mean(axis=0), points[2:].mean(axis=0)])
    near(output(ask, "kmeans", "dir", data), centroids - means)  # Newton's step ends at the means


def impact(w: float) -> float:
    """The square of where the particle lands, with the force by hand."""
    (x, y), (u, v), dt = (0.0, 8.0), (0.75, 0.0), 0.1
    while True:
        fx = fy = 0.0
        for cx, cy in ((10.0, 10.0 - w), (10.0, 0.0)):
            cube = ((x - cx) ** 2 + (y - cy) ** 2) ** 1.5
            fx, fy = fx - (cx - x) / cube, fy - (cy - y) / cube
        if y + dt * v <= 0:
            return (x - u * y / v) ** 2
        x, y, u, v = x + dt * u, y + dt * v, u + dt * fx, v + dt * fy


def landing(start: float) -> float:
    """The end of the published descent, with slopes by differences."""
    found = argmin(lambda w: impact(w[0]), lambda w: slopes(impact, w[0]).reshape(1), np.array([start]), np.linalg.norm)
    return float(found[0])


def test_the_published_descent_ends_at_gradbenchs_result() -> None:
    assert landing(0.0) == pytest.approx(0.2071918746486116, abs=1e-9)


@pytest.mark.parametrize("modes", MODES)
def test_particle_in_each_pair_of_modes(ask: Ask, modes: str) -> None:
    assert output(ask, "particle", modes, {"w": 0.207}) == pytest.approx(landing(0.207), abs=1e-9)


@pytest.mark.slow
def test_particle_from_gradbenchs_start(ask: Ask) -> None:
    assert output(ask, "particle", "rr", {"w": 0.0}) == pytest.approx(0.2071918746486116, abs=1e-9)


@pytest.mark.parametrize("modes", MODES)
def test_saddle_in_each_pair_of_modes(ask: Ask, modes: str) -> None:
    """min max of x² - y²: all four numbers follow the same path."""
    start = np.array([0.002, 0.002])
    truth = argmin(lambda x: float(x @ x), lambda x: 2 * x, start, np.linalg.norm)
    near(output(ask, "saddle", modes, {"start": start.tolist()}), [*truth, *truth])


@pytest.mark.slow
@pytest.mark.parametrize("modes", MODES)
def test_a_compiling_backend_traces_the_inner_derivative(modes: str) -> None:
    start = np.array([0.002, 0.002])
    truth = argmin(lambda x: float(x @ x), lambda x: 2 * x, start, np.linalg.norm)
    near(output(asking(tool("tape_compiled")), "saddle", modes, {"start": start.tolist()}), [*truth, *truth])


def test_the_descent_ends_at_gradbenchs_saddle() -> None:
    found = argmin(lambda x: float(x @ x), lambda x: 2 * x, np.array([1.0, 1.0]), np.linalg.norm)
    assert found == pytest.approx([8.246324826140356e-06] * 2, rel=1e-9)


@pytest.mark.parametrize("backend", ["jax", "autograd", "torch"])
def test_other_backends_agree(backend: str) -> None:
    ask = asking(tool(backend))
    data = inputs.gmm_input(d=2)
    found = output(ask, "gmm", "jacobian", data)
    for name, part in found.items():
        near(part, slopes(lambda x, name=name: inputs.gmm({**data, name: x}), data[name]))
    near(output(ask, "lse", "gradient", {"x": [0.0, math.log(3.0)]}), [0.25, 0.75])
    assert output(ask, "hello", "double", 2.0) == 4.0


def test_a_compiling_backend_refuses_data_dependent_code() -> None:
    answer = asking(tool("jax"))("particle")
    assert answer["success"] is False
    assert "loop or branch depends on data" in answer["error"]
    assert "Cannot apply JAX transformations" not in answer["error"]


def test_forward_mode_alone_has_no_reverse() -> None:
    ask = asking(tool("tape_forward"))
    assert ask("particle")["success"]
    refusal = ask("particle", "rf", {"w": 0.207})
    assert not refusal["success"]
    assert "tape_forward has no reverse mode that nests" in refusal["error"]


def test_a_backend_without_derivatives_refuses_with_a_reason() -> None:
    answer = asking(tool("finite_differences"))("saddle")
    assert not answer["success"]
    assert "finite_differences: a difference of differences keeps too few digits" in answer["error"]


def test_nesting_that_treats_the_inner_derivative_as_constant_is_refused() -> None:
    right = from_module("tape", load(catalog().backends["tape"]))

    def constant(g: Any, x: Any, w: Any) -> Any:
        """Of numbers inside: correct at the point, but constant around it."""
        return right.nested["vjp"](g, x, w) if isinstance(x[0], np.ndarray) else (4.5,)

    with pytest.raises(Unsupported, match="reverse mode inside reverse mode is wrong with tape: got 0 instead of 4 x"):
        refuse_wrong_nest(replace(right, nested={"vjp": constant}), "rr")
    refuse_wrong_nest(right, "rr")


def test_a_cpp_backend_has_the_modules_that_fit_its_implementations() -> None:
    ask = asking(tool("cpp_plain"))
    answer = ask("lse")
    if not answer["success"] and "compiler" in answer["error"]:
        pytest.skip(answer["error"])
    assert output(ask, "lse", "primal", {"x": [0.0, 0.0]}) == pytest.approx(math.log(2))
    assert output(ask, "hello", "square", 3.0) == 9.0
    refusal = ask("ba")
    assert not refusal["success"]
    assert "no C++ implementation" in refusal["error"]
    assert "C++ implementation" in ask("saddle")["error"]


@pytest.mark.parametrize("module", MODULES)
def test_define_accepts_every_module_with_tape(ask: Ask, module: str) -> None:
    answer = ask(module)
    assert answer["success"]
    assert {timing["name"] for timing in answer["timings"]} == set(MODULES[module].functions)
