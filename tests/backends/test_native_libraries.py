"""Every installed C++ library: operators and relations on a user's case, and every C++ implementation."""

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

# A build takes seconds, for Stan Math up to twenty.
BUILT_FAST = ("adolc",)
every_library = pytest.mark.parametrize("name", mostly_slow(SCALAR, fast=BUILT_FAST))


@cache
def backend(name: str) -> Backend:
    """The backend; skips the test without its library or a compiler."""
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
def test_operators_and_relations_are_correct_on_a_users_case(name: str, tmp_path: Path) -> None:
    backend(name)
    found = records(native_case.write(tmp_path), name)
    asked = [record for (operator, _), record in found.items() if operator not in COMPOSITIONS]
    assert {record.status for record in asked} == {"ok"}, [record for record in asked if record.status != "ok"]
    own = {operator for (operator, _), record in found.items() if record.how == "native"}
    assert own >= {"value", "gradient", "value_and_gradient", "jacobian", "jvp", "vjp", "hvp", "relations"}
    assert ("hessian" in own) == (name != "sacado")


@pytest.mark.slow
def test_a_changed_branch_or_constant_triggers_a_new_recording(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("name", mostly_slow([*SCALAR, *OWN_TEXTS], fast=("adolc",)))
def test_the_library_is_correct_on_every_cpp_implementation(name: str, nightly: int) -> None:
    """A build takes seconds, so only `--nightly 2` tests all implementations, otherwise a few."""
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
def test_two_threads_can_call_one_library(name: str) -> None:
    """ctypes' default loader releases the interpreter lock; two threads on Stan Math's tape crash the process."""
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


def test_adolc_leaves_no_files_and_long_recordings_do_not_slow_short_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("adolc", "adolc_reuse"):
        used, case = backend(name), TWINS["recurrence"]
        names, args, wrt = case.bind(5_000, 0)  # two million operations, more than ADOL-C's buffers hold
        f = function_of(case, names, used.xp)
        given = used.native_inputs(args)
        call = used.prepare("gradient", f, given, wrt)
        exact = case.gradient(**dict(zip(names, args, strict=True)))  # type: ignore[misc]
        for _ in range(3):
            (got,) = used.numpy_result(call(*given))
            np.testing.assert_allclose(got, exact[0], rtol=1e-10)
        assert not list(tmp_path.iterdir())
        # Each prepared call has its own copy of the library and its own pool of locations.
        small = used.native_inputs((args[0][:5],))
        other = used.prepare("gradient", f, small, wrt)
        shared = [c.__closure__ for c in (call, other)]
        assert shared[0] != shared[1]
    assert Path.cwd() == tmp_path


@pytest.mark.parametrize(("name", "variable"), [("adept", "ADEPT_HOME"), ("codipack", "CODIPACK_HOME")])
def test_an_adaptor_uses_only_documented_names_of_a_missing_library(
    name: str, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On stand-in headers, so this does not test the library itself."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "include").symlink_to(STANDIN)
    monkeypatch.setenv(variable, str(home))
    library: CppLibrary = load(catalog().backends[name]).LIBRARY
    used = CppLibrary(library.header, needs=library.needs, prefixes=library.prefixes)  # no library to link
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
def test_a_librarys_own_implementation_serves_all_choices_of_active_inputs(name: str) -> None:
    library: CppLibrary = load(catalog().backends[name]).LIBRARY
    cases = catalog().cases
    text = library.text_of(cases["normal_log_density"])
    assert text.parent.name == name
    assert library.text_of(cases["normal_log_density_in_y"]) == text
    with pytest.raises(Unsupported, match=r"there is no \w+\.hpp"):
        library.text_of(cases["normal_log_density_loop_in_y"])


@pytest.mark.parametrize("name", ["product_plus_constant", "normal_log_density"])
def test_fastads_adaptor_binds_once_and_again_when_a_constant_changes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a stand-in header for FastAD, whose density stores values computed from constants."""
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
def test_a_missing_library_is_unsupported_and_names_its_source(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(f"{name.upper()}_HOME", raising=False)
    library = load(catalog().backends[name]).LIBRARY
    with pytest.raises(Unsupported) as raised:
        CppLibrary(library.header, needs="no_such/" + library.needs, prefixes=library.prefixes, get=library.get).found()
    said = str(raised.value)
    assert said.startswith(f"no_such/{library.needs} was not found in ${name.upper()}_HOME, ")
    assert said.endswith(library.get)
