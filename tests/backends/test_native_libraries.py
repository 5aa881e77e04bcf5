"""Every C++ library that is installed: all operators and relations on a case of a user's own, and every twin."""

from __future__ import annotations

import os
import threading
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adbench import CppLibrary, Namespace, Unsupported
from adbench.catalog.discovery import builtin_folder, catalog, load
from adbench.execution.session import prepare
from adbench.model.backend import Backend, from_module
from adbench.model.case import function_of
from adbench.model.operator import COMPOSITIONS
from tests.backends import native_case
from tests.support.marks import mostly_slow

STANDIN = Path(__file__).parent / "standin"
SCALAR = ("stan_math", "cppad", "cppad_reuse", "cppad_optimised", "sacado", "adolc", "adolc_reuse")
OWN_TEXTS = ("stan_math_builtin", "stan_math_matrix")
NATIVE = builtin_folder("backends") / "native"
TWINS = {name: case for name, case in catalog().cases.items() if not case.is_trap and case.twin and not case.same_twin}

FEW = ("product_plus_constant", "normal_log_density", "lotka_volterra", "projectile", "recurrence")

# To build what a library needs takes seconds, of Stan Math up to twenty.
BUILT_FAST = ("adolc", "adolc_reuse")
every_library = pytest.mark.parametrize("name", mostly_slow(SCALAR, fast=BUILT_FAST))


@cache
def backend(name: str) -> Backend:
    """The backend; skips the test, with what to install, where its library or the compiler is not there."""
    module = load(catalog().backends[name])
    try:
        module.LIBRARY.found()
    except Unsupported as reason:
        if os.environ.get("CI"):
            pytest.fail(f"{name}: {reason}")
        pytest.skip(f"{name}: {reason}")
    return from_module(name, module)


def records(case: Path, name: str, seeds: int = 2) -> dict[tuple[str, int], Any]:
    session = prepare(cases=[str(case)], backends=[name], time=False, memory=False, points=seeds)
    for _ in session.events():
        pass
    return {(record.job.operator, record.job.seed): record for record in session.result().records}


@every_library
def test_operators_and_relations_are_right_on_a_users_own_case(name: str, tmp_path: Path) -> None:
    backend(name)
    found = records(native_case.write(tmp_path), name)
    asked = [record for (operator, _), record in found.items() if operator not in COMPOSITIONS]
    assert {record.status for record in asked} == {"ok"}, [record for record in asked if record.status != "ok"]
    own = {operator for (operator, _), record in found.items() if record.how == "native"}
    assert own >= {"value", "gradient", "value_and_gradient", "jacobian", "jvp", "vjp", "hvp", "relations"}
    assert ("hessian" in own) == (name != "sacado")


@pytest.mark.slow
def test_a_recording_is_made_again_where_a_branch_or_a_constant_changes(tmp_path: Path) -> None:
    file = native_case.write(tmp_path, wrt=("x",))
    case = native_case.case(file)
    names, args, wrt = case.bind(3, 0)
    below = (1.2, np.array([0.7, 0.9, 1.3]), *args[2:])
    above = (0.8, np.array([1.4, 0.9, 1.3]), *args[2:])
    constant = (0.9, below[1], *args[2:])
    for name in ("cppad_reuse", "cppad_optimised", "adolc_reuse"):
        used, fresh = backend(name), backend("sacado")
        f = function_of(case, names, used.xp)
        call = used.prepare("gradient", f, used.native_inputs(below), wrt)
        for at in (below, above, below, constant, above):
            (got,) = used.numpy_result(call(*used.native_inputs(at)))
            again = fresh.prepare("gradient", f, fresh.native_inputs(at), wrt)
            (expected,) = fresh.numpy_result(again(*fresh.native_inputs(at)))
            np.testing.assert_allclose(got, expected, rtol=1e-13, err_msg=name)


@pytest.mark.parametrize("name", mostly_slow([*SCALAR, *OWN_TEXTS], fast=(*BUILT_FAST, "sacado")))
def test_the_library_is_right_on_every_twin(name: str, nightly: int) -> None:
    """A unit takes seconds to build, so that it is every twin with `--nightly 2` only, and else a few."""
    used, wrong = backend(name), []
    for case in TWINS.values():
        if nightly < 2 and not used.functions and case.name not in FEW:
            continue
        if used.functions and case.name not in used.functions:
            continue
        for size in case.sizes[1:2] or case.sizes:
            names, args, wrt = case.bind(size, 1)
            given = used.native_inputs(args)
            f = used.function(case, names)
            value, gradient = used.numpy_result(used.prepare("value_and_gradient", f, given, wrt)(*given))
            if not np.isclose(value, function_of(case, names, Namespace(np))(*args), rtol=1e-12):
                wrong.append(f"{case.name} {size}: the value is {value}")
            if case.gradient is None:
                continue
            exact = case.gradient(**dict(zip(names, args, strict=True)))
            for got, truth in zip(gradient, exact, strict=True):
                if not np.allclose(got, truth, rtol=1e-11, atol=1e-12 * np.max(np.abs(truth))):
                    wrong.append(f"{case.name} {size}: {np.max(np.abs(got - truth))}")
    assert not wrong, "\n".join(wrong)


@every_library
def test_two_threads_may_call_one_library(name: str) -> None:
    """ctypes' usual loader gives the interpreter's lock away; two threads on Stan Math's one tape end the process."""
    used, case = backend(name), TWINS["product_plus_constant"]
    names, args, wrt = case.bind(1, 0)
    given = used.native_inputs(args)
    f = function_of(case, names, used.xp)
    calls = [used.prepare("gradient", f, given, wrt) for _ in range(2)]
    wrong: list[Any] = []

    def work(call: Any) -> None:
        for _ in range(2000):
            got = [float(part) for part in used.numpy_result(call(*given))]
            if not np.allclose(got, [2.2, 20.6]):
                wrong.append(got)

    threads = [threading.Thread(target=work, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_adolc_leaves_no_files_and_a_long_recording_does_not_slow_a_short_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("adolc", "adolc_reuse"):
        used, case = backend(name), TWINS["recurrence"]
        names, args, wrt = case.bind(5_000, 0)  # two million operations: more than ADOL-C's own buffers hold
        f = function_of(case, names, used.xp)
        given = used.native_inputs(args)
        call = used.prepare("gradient", f, given, wrt)
        exact = case.gradient(**dict(zip(names, args, strict=True)))  # type: ignore[misc]
        for _ in range(3):
            (got,) = used.numpy_result(call(*given))
            np.testing.assert_allclose(got, exact[0], rtol=1e-10)
        assert not list(tmp_path.iterdir())
        # Each prepared call has a copy of the library, and so a pool of locations, of its own.
        small = used.native_inputs((args[0][:5],))
        other = used.prepare("gradient", f, small, wrt)
        shared = [c.__closure__ for c in (call, other)]
        assert shared[0] != shared[1]
    assert Path.cwd() == tmp_path


@pytest.mark.parametrize(("name", "variable"), [("adept", "ADEPT_HOME"), ("codipack", "CODIPACK_HOME")])
def test_an_adaptor_keeps_to_the_documented_names_of_a_library_that_is_not_here(
    name: str, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On headers that stand in for the library: this tells nothing of the library itself."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "include").symlink_to(STANDIN)
    monkeypatch.setenv(variable, str(home))
    library: CppLibrary = load(catalog().backends[name]).LIBRARY
    used = CppLibrary(library.header, needs=library.needs, prefixes=library.prefixes)  # there is nothing to link
    case = native_case.case(native_case.write(tmp_path))
    names, args, wrt = case.bind(3, 0)
    f = function_of(case, names, Namespace(np))
    given = [used.to_native(a) if isinstance(a, float | np.ndarray) else a for a in args]
    given[3] = {"w": [used.to_native(args[3]["w"][0]), (used.to_native(args[3]["w"][1][0]),)],
                "scale": used.to_native(args[3]["scale"])}  # fmt: skip
    v = (used.to_native(0.5), used.to_native([1.0, -2.0, 0.25]))
    step = 1e-6

    def moved(side: float) -> tuple[Any, ...]:
        return (args[0] + side * step * 0.5, args[1] + side * step * np.array([1.0, -2.0, 0.25]), *args[2:])

    def gradient(at: tuple[Any, ...]) -> Any:
        native = (used.to_native(at[0]), used.to_native(at[1]), *given[2:])
        row = used.to_numpy(used.prepare("gradient", f, native, wrt)(*native))
        return np.concatenate([np.ravel(part) for part in row])

    slope = (native_case.value(case, moved(1), names) - native_case.value(case, moved(-1), names)) / (2 * step)
    direction = np.array([0.5, 1.0, -2.0, 0.25])
    assert gradient(args) @ direction == pytest.approx(slope, rel=1e-8)
    assert used.prepare("jvp", f, (*given, v), wrt)(*given, v) == pytest.approx(slope, rel=1e-8)
    if name == "codipack":
        row = used.to_numpy(used.prepare("hvp", f, (*given, v), wrt)(*given, v))
        expected = (gradient(moved(1)) - gradient(moved(-1))) / (2 * step)
        np.testing.assert_allclose(np.concatenate([np.ravel(part) for part in row]), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["fastad", "stan_math_builtin"])
def test_a_text_in_a_librarys_own_words_serves_cases_that_differ_in_what_is_active(name: str) -> None:
    library: CppLibrary = load(catalog().backends[name]).LIBRARY
    cases = catalog().cases
    text = library.text_of(cases["normal_log_density"])
    assert text.parent.name == name
    assert library.text_of(cases["normal_log_density_in_y"]) == text
    with pytest.raises(Unsupported, match="no C\\+\\+ twin"):
        library.text_of(cases["normal_log_density_loop_in_y"])


@pytest.mark.parametrize("name", ["product_plus_constant", "normal_log_density"])
def test_fastads_adaptor_binds_once_and_again_where_a_constant_has_changed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a header that stands in for FastAD, whose density keeps what it computes from constants."""
    (tmp_path / "include").symlink_to(STANDIN)
    monkeypatch.setenv("FASTAD_HOME", str(tmp_path))
    used: CppLibrary = load(catalog().backends["fastad"]).LIBRARY
    case = catalog().cases[name]
    call = None
    for seed in (0, 1, 0):
        names, args, wrt = case.bind(10, seed)
        given = tuple(map(used.to_native, args))
        call = call or used.prepare("gradient", function_of(case, names, Namespace(np)), given, wrt)
        for part, exact in zip(used.to_numpy(call(*given)), case.gradient(*args), strict=True):  # type: ignore[misc]
            np.testing.assert_allclose(part, exact, rtol=1e-12)


@pytest.mark.parametrize("name", ["adept", "codipack", "fastad"])
def test_a_library_that_is_not_there_is_unsupported_and_says_how_to_get_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(f"{name.upper()}_HOME", raising=False)
    library = load(catalog().backends[name]).LIBRARY
    with pytest.raises(Unsupported) as raised:
        CppLibrary(library.header, needs="no_such/" + library.needs, prefixes=library.prefixes, get=library.get).found()
    said = str(raised.value)
    assert said.startswith(f"no_such/{library.needs} was not found in ${name.upper()}_HOME, ")
    assert said.endswith(library.get)
