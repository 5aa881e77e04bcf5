"""Every backend × operator × case is correct, with the inputs' shapes, at other inputs and in repeated calls."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from adbench import Case, Namespace, Operator, Unsupported
from adbench.catalog.discovery import catalog
from adbench.model import tree
from adbench.model.backend import OPERATORS, Backend
from adbench.model.case import function_of
from tests.backends.loaded import NAMES, backend
from tests.cases.high_precision import gradient as high_precision_gradient
from tests.execution.test_fallback import SCALAR, A, quadratic

# One case per kind; `adbench check` tests all cases and every relation between calls.
KINDS = (
    "log_determinant",
    "lotka_volterra",
    "matrix_product",
    "normal_log_density",
    "normal_log_density_loop",
    "product_plus_constant",
    "projectile",
    "recurrence",
)
CASES = {name: catalog().cases[name] for name in KINDS}
OFFERED: tuple[Operator, ...] = ("value", "gradient", "value_and_gradient")

every_backend = pytest.mark.parametrize("name", NAMES)


def native(used: Backend, function: Callable[..., Any], *args: Any, wrt: tuple[int, ...] = (0,)) -> tuple[Any, Any]:
    """Value and gradient of function(xp, *args), as numpy."""
    given = used.native_inputs(args)
    call = used.prepare("value_and_gradient", lambda *a: function(used.xp, *a), given, wrt)
    value, gradient = used.numpy_result(call(*given))
    return value, gradient


@cache
def truth(case: str, size: int, seed: int) -> tuple[Any, tuple[Any, ...]]:
    """The value on numpy, the gradient by hand or by high-precision differences."""
    chosen = CASES[case]
    names, args, _ = chosen.bind(size, seed)
    value = function_of(chosen, names, Namespace(np))(*args)
    by_hand = chosen.gradient
    exact = by_hand(**dict(zip(names, args, strict=True))) if by_hand else high_precision_gradient(chosen, size, seed)
    return value, exact


def assert_right(
    used: Backend, operator: Operator, result: Any, case: Case, exact: tuple[Any, tuple[Any, ...]]
) -> None:
    value = result if operator == "value" else result[0] if operator == "value_and_gradient" else None
    gradient = result if operator == "gradient" else result[1] if operator == "value_and_gradient" else None
    if value is not None:
        assert np.shape(value) == ()
        assert np.asarray(value).dtype == np.float64
        np.testing.assert_allclose(value, exact[0], rtol=1e-12)
    if gradient is not None:
        assert isinstance(gradient, tuple)
        assert len(gradient) == len(case.wrt)
        for got, expected in zip(gradient, exact[1], strict=True):
            assert np.asarray(got).dtype == np.float64
            assert np.shape(got) == np.shape(expected)
            largest = np.max(np.abs(expected))
            claimed = used.claimed_relative_error
            np.testing.assert_allclose(got, expected, rtol=0 if claimed else 1e-12, atol=largest * (claimed or 1e-14))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("operator", OFFERED)
@every_backend
def test_operators_are_correct_on_every_case(name: str, operator: Operator, case: str) -> None:
    used, chosen = backend(name), CASES[case]
    for size in chosen.sizes[:1] if name == "jax" else chosen.sizes[:3]:  # jax compiles for a quarter of a second each
        names, args, wrt = chosen.bind(size, 0)
        _, others, _ = chosen.bind(size, 1)
        here, there = used.native_inputs(args), used.native_inputs(others)
        f = function_of(chosen, names, used.xp)
        if (name, case) == ("jax", "projectile"):
            with pytest.raises(Unsupported, match="depends on data"):
                used.prepare(operator, f, here, wrt)
            continue
        call = used.prepare(operator, f, here, wrt)
        for at, seed in ((here, 0), (there, 1), (here, 0)):
            assert_right(used, operator, used.numpy_result(call(*at)), chosen, truth(case, size, seed))
        for before, after in zip(tree.leaves(args), tree.leaves(used.numpy_result(here)), strict=True):
            np.testing.assert_array_equal(before, after)  # the call did not change its inputs


# The library's own operators; adbench builds the others.
OWN: dict[str, set[str]] = {
    "autograd": {*OFFERED, "jvp", "vjp", "hvp"},
    "finite_differences": {*OFFERED, "jacobian"},
    "jax": {*OPERATORS},
    "tape": {*OPERATORS},
    "torch": {*OPERATORS},
}


@pytest.mark.parametrize("operator", OPERATORS)
@every_backend
def test_each_operator_is_refused_or_correct(name: str, operator: Operator) -> None:
    used = backend(name)
    args = used.native_inputs((*SCALAR.args, *SCALAR.vectors.get(operator, ())))
    if operator not in OWN[name]:
        with pytest.raises(Unsupported, match=operator):
            used.prepare(operator, quadratic, args, (0, 1))
        return
    call = used.prepare(operator, lambda x, b: quadratic(x, b, used.to_native(A)), args, (0, 1))
    for _ in range(2):
        got, expected = used.numpy_result(call(*args)), SCALAR.truth(operator)
        for part, truth_part in zip(tree.leaves(got), tree.leaves(expected), strict=True):
            assert np.shape(part) == np.shape(truth_part)
            np.testing.assert_allclose(part, truth_part, rtol=1e-6 if used.claimed_relative_error else 1e-13)


def test_jax_refuses_data_dependent_code_in_one_line() -> None:
    case, used = CASES["projectile"], backend("jax")
    names, args, wrt = case.bind(1, 0)
    with pytest.raises(Unsupported) as raised:
        used.prepare("gradient", function_of(case, names, used.xp), used.native_inputs(args), wrt)
    reason = str(raised.value)
    assert "\n" not in reason
    assert "a Python loop or branch depends on data" in reason


@pytest.mark.parametrize("wrt", [(0,), (1,), (2,), (0, 1), (1, 2), (2, 0), (0, 1, 2)])
@every_backend
def test_any_inputs_can_be_active_in_any_order(name: str, wrt: tuple[int, ...]) -> None:
    y, mu, sigma = np.array([0.3, -1.2, 2.0]), 0.4, 1.7
    z = (y - mu) / sigma
    exact = (-z / sigma, np.sum(z) / sigma, np.sum(z * z - 1) / sigma)
    _, gradient = native(backend(name), CASES["normal_log_density"].f, y, mu, sigma, wrt=wrt)
    for got, which in zip(gradient, wrt, strict=True):
        np.testing.assert_allclose(got, exact[which], rtol=1e-8)


@every_backend
def test_a_nested_input_has_a_nested_gradient(name: str) -> None:
    def f(xp: Any, x: Any, layers: Any, options: Any) -> Any:
        x = xp.loop(lambda _, s: s * layers["scale"], x, options["times"])
        return xp.sum(layers["weights"][0] @ x) + layers["weights"][1][0] if options["sum"] else x

    x, w = np.array([1.0, 2.0]), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    layers = {"weights": [w, (0.5,)], "scale": 3.0}
    _, (by_layers,) = native(backend(name), f, x, layers, {"times": 2, "sum": True}, wrt=(1,))
    assert isinstance(by_layers["weights"], list)
    assert isinstance(by_layers["weights"][1], tuple)
    np.testing.assert_allclose(by_layers["weights"][0], np.tile(9 * x, (3, 1)), rtol=1e-8)
    np.testing.assert_allclose(by_layers["weights"][1][0], 1.0, rtol=1e-8)
    np.testing.assert_allclose(by_layers["scale"], 6 * (w @ x).sum(), rtol=1e-8)


@every_backend
def test_an_inactive_input_has_gradient_zero(name: str) -> None:
    _, (by_x, by_y) = native(backend(name), lambda xp, x, y: xp.sum(x), np.ones(2), np.ones((2, 3)), wrt=(0, 1))
    np.testing.assert_allclose(by_x, np.ones(2), rtol=1e-8)
    np.testing.assert_array_equal(by_y, np.zeros((2, 3)))


@every_backend
def test_a_switch_may_be_a_string_and_a_loop_may_be_empty(name: str) -> None:
    def f(xp: Any, x: Any, which: str, n: int) -> Any:
        return xp.loop(lambda _, s: s * s, x, n) if which == "loop" else xp.sin(x)

    assert native(backend(name), f, 0.7, "loop", 0)[1][0] == pytest.approx(1.0)
    assert native(backend(name), f, 0.7, "loop", 2)[1][0] == pytest.approx(4 * 0.7**3)
    assert native(backend(name), f, 0.7, "sine", 2)[1][0] == pytest.approx(np.cos(0.7))


@pytest.mark.parametrize(
    ("function", "slope"),
    [
        (lambda xp, x: xp.acos(x), lambda x: -1 / np.sqrt(1 - x * x)),
        (lambda xp, x: xp.asinh(x), lambda x: 1 / np.sqrt(1 + x * x)),
        (lambda xp, x: xp.atan(x), lambda x: 1 / (1 + x * x)),
        (lambda xp, x: xp.pow(x, 3.0), lambda x: 3 * x * x),
        (lambda xp, x: xp.atan2(x, 2 * xp.ones_like(x)), lambda x: 2 / (4 + x * x)),
        (lambda xp, x: xp.cumulative_sum(x)[1], lambda x: np.array([1.0, 1.0, 0.0])),
        (lambda xp, x: xp.concat([x, x])[1:5], lambda x: np.array([1.0, 2.0, 1.0])),
        (lambda xp, x: xp.stack([x, x])[0, :], lambda x: np.ones(3)),
        (lambda xp, x: xp.matrix_transpose(xp.stack([x, x]))[0, :], lambda x: np.array([2.0, 0.0, 0.0])),
        (lambda xp, x: xp.permute_dims(xp.stack([x, x]), (1, 0))[0, :], lambda x: np.array([2.0, 0.0, 0.0])),
    ],
    ids=("acos", "asinh", "atan", "pow", "atan2", "cumulative_sum", "concat", "stack", "matrix_transpose", "permute"),
)
@pytest.mark.parametrize("name", ["autograd", "torch"])  # numpy and jax use the standard's names
def test_array_api_functions_are_differentiable(name: str, function: Any, slope: Any) -> None:
    x = np.array([0.2, -0.5, 0.7])
    _, (gradient,) = native(backend(name), lambda xp, x: xp.sum(function(xp, x)), x)
    np.testing.assert_allclose(gradient, slope(x), rtol=1e-12)


def test_torch_marks_no_tensor_of_the_caller_and_keeps_no_graph() -> None:
    used, case = backend("torch"), CASES["normal_log_density"]
    names, args, wrt = case.bind(10, 0)
    given = used.native_inputs(args)
    value, gradient = used.prepare("value_and_gradient", function_of(case, names, used.xp), given, wrt)(*given)
    assert not any(tensor.requires_grad or tensor.grad is not None for tensor in (*given, value, *gradient))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, source in catalog().backends.items() if not source.requires])
def test_a_backend_without_a_library_follows_the_contract(name: str) -> None:
    if not catalog().backends[name].builds:
        assert backend(name).prepare


@pytest.mark.slow
def test_importing_a_backend_prints_nothing_and_does_not_warn() -> None:
    program = (
        f"from adbench.catalog.discovery import catalog, load\nfor name in {NAMES}: load(catalog().backends[name])"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
