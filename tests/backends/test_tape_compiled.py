"""The backend tape_compiled: phases and missing operators."""

import numpy as np
import pytest

from adbench import Unsupported
from adbench.catalog.discovery import catalog, load
from adbench.measure.phases import collecting
from adbench.model.backend import from_module

CATALOG = catalog()


@pytest.mark.parametrize("name", ["tape_compiled", "tape_compiled_fast_math"])
def test_recording_lowering_and_compiling_are_separate_phases_before_calls(name: str) -> None:
    backend = from_module(name, load(CATALOG.backends[name]))
    case = CATALOG.cases["normal_log_density"]
    names, args, wrt = case.bind(10, 0)
    with collecting() as preparing:
        call = backend.prepare("value_and_gradient", backend.function(case, names), args, wrt)
    assert set(preparing) == {"record", "lower", "compile"}
    assert all(seconds > 0 for seconds in preparing.values())
    with collecting() as calling:
        value, slopes = call(*args)
    assert calling == {}
    given = case.gradient(*args)
    assert np.isfinite(value)
    np.testing.assert_allclose(slopes, given, rtol=1e-11)


def test_a_missing_operator_is_unsupported_by_name() -> None:
    backend = from_module("tape_compiled", load(CATALOG.backends["tape_compiled"]))
    case = CATALOG.cases["normal_log_density"]
    names, args, wrt = case.bind(10, 0)
    with pytest.raises(Unsupported, match="third derivative"):
        backend.prepare("third derivative", backend.function(case, names), args, wrt)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["tape_compiled", "tape_compiled_fast_math"])
@pytest.mark.parametrize(
    ("which", "reason"), [("trap_det_of_zero", "Singular matrix"), ("trap_equal_eigenvalues", "equal eigenvalues")]
)
def test_a_cell_without_machine_code_is_unsupported_and_never_runs_eagerly(name: str, which: str, reason: str) -> None:
    backend = from_module(name, load(CATALOG.backends[name]))
    case = CATALOG.cases[which]
    names, args, wrt = case.bind(1, 0)
    with pytest.raises(Unsupported, match=f"{which} does not run as machine code: .*{reason}"):
        backend.prepare("gradient", backend.function(case, names), args, wrt)


@pytest.mark.parametrize("name", ["tape_compiled", "tape_compiled_fast_math"])
def test_a_jacobian_is_sparse_where_the_case_declares_a_pattern(name: str) -> None:
    backend = from_module(name, load(CATALOG.backends[name]))
    case = CATALOG.cases["bundle_adjustment"]
    names, args, wrt = case.bind(2, 0)
    expected = load(CATALOG.backends["tape"]).prepare("jacobian", backend.function(case, names), args, wrt)(*args)
    for size in (None, 2):
        found = backend.prepare("jacobian", backend.function(case, names, size), args, wrt)(*args)
        assert [hasattr(block, "toarray") for block in found] == [size is not None] * 3
        for ours, theirs in zip(found, expected, strict=True):
            matrix = ours.toarray().reshape(theirs.shape) if size else ours
            np.testing.assert_allclose(matrix, theirs, rtol=1e-12, atol=1e-12)


def test_a_hessian_has_a_block_for_each_pair_of_inputs() -> None:
    backend = from_module("tape_compiled", load(CATALOG.backends["tape_compiled"]))
    case = CATALOG.cases["normal_log_density"]
    names, args, wrt = case.bind(10, 0)
    found = backend.prepare("hessian", backend.function(case, names), args, wrt)(*args)
    eager = load(CATALOG.backends["tape"]).prepare("hessian", backend.function(case, names), args, wrt)(*args)
    for ours, theirs in zip(found, eager, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
