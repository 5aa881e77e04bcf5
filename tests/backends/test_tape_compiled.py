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
    with pytest.raises(Unsupported, match="hessian"):
        backend.prepare("hessian", backend.function(case, names), args, wrt)
