"""Hand-written gradients in C++ agree with the Python cases, and work where those fail."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adbench import Namespace, Unsupported
from adbench.catalog.discovery import builtin_folder, catalog, load
from adbench.model.backend import from_module
from adbench.model.case import function_of
from tests.support.marks import one_in

CATALOG = catalog()


def by_hand(name: str, size: int, *args: Any, backend: str = "cpp_hand") -> tuple[Any, Any]:
    """Value and gradient of a case in C++; skips the test without a compiler."""
    case = CATALOG.cases[name]
    names, _, wrt = case.bind(size, 0)
    try:
        used = from_module(backend, load(CATALOG.backends[backend]))
        given = used.native_inputs(args)
        call = used.prepare("value_and_gradient", function_of(case, names, used.xp), given, wrt)
    except Unsupported as reason:
        pytest.skip(str(reason))
    value, gradient = used.numpy_result(call(*given))
    return value, gradient


SCIENCE = (("burgers_equation", 12), ("heat_equation", 4), ("kalman_filter", 5), ("lennard_jones", 9))


@pytest.mark.parametrize(
    ("name", "size"),
    [
        *(("determinant_by_minors", 1), ("determinant_by_minors", 6), ("lotka_volterra_adaptive", 30)),
        *(("heston", 20), ("sabr_calibration", 20)),
        *(pytest.param(*cell, marks=pytest.mark.slow) for cell in (*SCIENCE, ("optimal_control", 7))),  # builds
    ],
)
def test_a_cpp_gradient_agrees_with_the_case(name: str, size: int) -> None:
    case = CATALOG.cases[name]
    names, args, _ = case.bind(size, 3)
    assert case.gradient is not None
    value, gradient = by_hand(name, size, *args)
    assert value == pytest.approx(float(case.f(Namespace(np), **dict(zip(names, args, strict=True)))), rel=1e-12)
    expected = case.gradient(**dict(zip(names, args, strict=True)))
    for found, one in zip(gradient, expected, strict=True):
        np.testing.assert_allclose(found, one, rtol=1e-9, atol=1e-12)


def test_cofactors_exist_for_a_singular_matrix() -> None:
    value, (gradient,) = by_hand("determinant_by_minors", 3, np.array([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]]))
    assert value == 0
    np.testing.assert_array_equal(gradient, [[-3, 6, -3], [6, -12, 6], [-3, 6, -3]])


@pytest.mark.parametrize(
    "name", one_in(4, sorted(path.stem for path in (builtin_folder("backends") / "native" / "cpp_simd").iterdir()))
)
def test_vectorised_gradients_agree_with_plain_ones_on_whole_and_partial_blocks(name: str) -> None:
    for size in (2, 7, 8, 9, 31, 33, 64, 65, 257, 300):
        _, args, _ = CATALOG.cases[name].bind(size, 3)
        value, gradient = by_hand(name, size, *args, backend="cpp_simd")
        expected, plain = by_hand(name, size, *args)
        assert value == pytest.approx(expected, rel=1e-12)
        for found, one in zip(gradient, plain, strict=True):
            np.testing.assert_allclose(found, one, rtol=1e-9, atol=1e-11, err_msg=f"{name} at {size}")


def test_vectorised_code_leaves_subnormal_numbers_on() -> None:
    by_hand("normal_log_density", 40, *CATALOG.cases["normal_log_density"].bind(40, 0)[1], backend="cpp_simd")
    assert (np.array([5e-324]) * 2.0).view(np.int64)[0] == 2  # a comparison of floats would hide it
