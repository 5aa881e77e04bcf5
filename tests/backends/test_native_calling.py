"""Calls from Python to C++: inputs of every kind, results and messages, tested on C++ dual numbers."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adbench import CppLibrary, Namespace, Unsupported
from adbench.catalog.discovery import builtin_folder
from adbench.execution.native.shared_object import LibraryError
from adbench.model import tree
from adbench.model.case import function_of
from tests.backends import native_case
from tests.support.marks import one_in

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
DUAL = CppLibrary(EXAMPLES / "dual_numbers.hpp")
HAND = CppLibrary(builtin_folder("backends") / "native" / "cpp_hand.hpp", by_hand=True)

pytestmark = pytest.mark.skipif(shutil.which(os.environ.get("CXX", "c++")) is None, reason="there is no C++ compiler")


def native(library: CppLibrary, arg: Any) -> Any:
    if isinstance(arg, dict):
        return {key: native(library, part) for key, part in arg.items()}
    if isinstance(arg, list | tuple):
        return type(arg)(native(library, part) for part in arg)
    return library.to_native(arg) if isinstance(arg, float | np.ndarray) else arg


def prepared(folder: Path, operator: Any, wrt: tuple[str, ...], n: int = 3, **more: Any) -> tuple[Any, Any, Any]:
    """(prepared call on dual numbers, its native arguments, the case)."""
    case = native_case.case(native_case.write(folder, wrt=wrt, **more))
    names, args, positions = case.bind(n, 0)
    given = tuple(native(DUAL, arg) for arg in args)
    if operator in ("jvp", "hvp"):
        given = (*given, tuple(given[position] for position in positions))
    return DUAL.prepare(operator, function_of(case, names, Namespace(np)), given, positions), given, case


def gradient(case: Any, n: int) -> list[Any]:
    """The gradient by differences of the Python function, in every leaf of the active inputs."""
    names, args, wrt = case.bind(n, 0)
    slopes = []
    for w in wrt:
        leaves = [args[w]] if not isinstance(args[w], dict) else [
            args[w]["scale"], args[w]["w"][0], args[w]["w"][1][0]
        ]  # fmt: skip
        for k, leaf in enumerate(leaves):

            def moved(step: Any, w: int = w, k: int = k, leaf: Any = leaf) -> float:
                new: list[Any] = list(args)
                if isinstance(args[w], dict):
                    parts = [args[w]["scale"], args[w]["w"][0], args[w]["w"][1][0]]
                    parts[k] = leaf + step
                    new[w] = {"scale": parts[0], "w": [parts[1], (parts[2],)]}
                else:
                    new[w] = leaf + step
                return native_case.value(case, tuple(new), names)

            steps = 1e-5 * np.eye(np.size(leaf)).reshape((np.size(leaf), *np.shape(leaf)))
            slopes.append(np.reshape([(moved(h) - moved(-h)) / 2e-5 for h in steps], np.shape(leaf)))
    return slopes


@pytest.mark.parametrize(
    "wrt", one_in(3, [("p", "a"), ("x",), ("p",), ("a", "x", "M", "p"), ("M",), ("a",)]), ids=lambda wrt: "".join(wrt)
)
def test_any_inputs_can_be_active_in_any_order_even_nested_ones(wrt: tuple[str, ...], tmp_path: Path) -> None:
    call, given, case = prepared(tmp_path, "gradient", wrt)
    result = DUAL.to_numpy(call(*given))
    assert isinstance(result, tuple)
    flat: list[Any] = []
    for name, part in zip(wrt, result, strict=True):
        if name == "p":
            assert isinstance(part["w"], list)
            assert isinstance(part["w"][1], tuple)
            flat += [part["scale"], part["w"][0], part["w"][1][0]]
        else:
            flat.append(part)
    for got, expected in zip(flat, gradient(case, 3), strict=True):
        assert np.shape(got) == np.shape(expected)
        np.testing.assert_allclose(got, expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("wrt", [("x",), ("p", "a")], ids=lambda wrt: "".join(wrt))
def test_a_batch_has_the_gradient_of_each_point(wrt: tuple[str, ...], tmp_path: Path) -> None:
    call, given, case = prepared(tmp_path, "gradient", wrt)
    names, _, positions = case.bind(3, 0)
    every = [
        tree.map_leaves(lambda leaf, k=k: np.array(leaf * (1 + k / 8)), tuple(given[w] for w in positions))
        for k in range(3)
    ]
    points = [tuple(dict(zip(positions, x, strict=True)).get(k, arg) for k, arg in enumerate(given)) for x in every]
    stack = tree.filled(every[0], [np.stack(leaves) for leaves in zip(*map(tree.leaves, every), strict=True)])
    stacked = tuple(dict(zip(positions, stack, strict=True)).get(k, arg) for k, arg in enumerate(given))
    f = function_of(case, names, Namespace(np))
    batch = DUAL.prepare("batch_gradient", f, stacked, positions)
    for _ in range(2):
        found = tree.leaves(DUAL.to_numpy(batch(*stacked)))
        for k, point in enumerate(points):
            for leaf, expected in zip(found, tree.leaves(DUAL.to_numpy(call(*point))), strict=True):
                np.testing.assert_array_equal(leaf[k], expected)


@pytest.mark.parametrize("mode", ["log", "other, with a ä"])
def test_strings_integers_and_booleans_reach_cpp(mode: str, tmp_path: Path) -> None:
    call, given, case = prepared(tmp_path, "value", ("a",), mode=mode)
    names, args, _ = case.bind(3, 0)
    assert call(*given) == pytest.approx(native_case.value(case, args, names), rel=1e-14)
    for position, other in ((4, 0), (4, 7), (5, False)):
        changed = (*args[:position], other, *args[position + 1 :])
        now = (*given[:position], other, *given[position + 1 :])
        assert call(*now) == pytest.approx(native_case.value(case, changed, names), rel=1e-14)
    assert call(*given) == pytest.approx(native_case.value(case, args, names), rel=1e-14)


def test_a_call_is_correct_at_other_shapes_than_the_prepared_ones(tmp_path: Path) -> None:
    call, given, case = prepared(tmp_path, "gradient", ("x",))
    args = case.bind(5, 0)[1]
    (got,) = DUAL.to_numpy(call(*(native(DUAL, arg) for arg in args)))
    np.testing.assert_allclose(got, gradient(case, 5)[0], rtol=1e-7)
    (got,) = DUAL.to_numpy(call(*given))
    np.testing.assert_allclose(got, gradient(case, 3)[0], rtol=1e-7)


def test_an_array_changed_in_place_is_read_again(tmp_path: Path) -> None:
    call, given, case = prepared(tmp_path, "value", ("x",))
    names, args, _ = case.bind(3, 0)
    call(*given)
    given[1][:] = [0.5, 0.25, 2.0]
    assert call(*given) == pytest.approx(native_case.value(case, (args[0], given[1], *args[2:]), names), rel=1e-14)
    given[3]["w"] = [np.array([3.0, 5.0]), given[3]["w"][1]]  # another array in the same dict
    expected = native_case.value(case, (args[0], given[1], args[2], given[3], *args[4:]), names)
    assert call(*given) == pytest.approx(expected, rel=1e-14)


def test_results_stay_valid_and_their_memory_is_reused_when_dropped(tmp_path: Path) -> None:
    call, given, _ = prepared(tmp_path, "gradient", ("x",))
    first = call(*given)
    kept = DUAL.to_numpy(first)[0]
    other = (*given[:1], 2.0 * given[1], *given[2:])
    second = call(*other)
    assert second is not first
    np.testing.assert_array_equal(DUAL.to_numpy(first)[0], kept)
    assert not np.array_equal(DUAL.to_numpy(second)[0], kept)
    kept[:] = np.nan
    assert np.isfinite(DUAL.to_numpy(first)[0]).all()
    del first, second
    call(*given)
    third = id(call(*given))
    assert id(call(*given)) == third  # unreferenced memory is reused


def test_arrays_of_any_layout_are_copied_row_by_row() -> None:
    columns = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    copied = DUAL.to_native(columns)
    assert copied.flags.c_contiguous
    assert copied.flags.owndata
    columns[0, 0] = np.nan
    assert copied[0, 0] == 0.0
    assert DUAL.to_native(1.5).shape == ()


@pytest.mark.parametrize(
    ("thrown", "kind", "said"),
    [
        ('std::domain_error("no such place\\nand more")', LibraryError, "no such place"),
        ('adbench::Unsupported("it has no bounds")', Unsupported, "it has no bounds"),
        ("std::bad_alloc()", LibraryError, "std::bad_alloc"),
        ("42", LibraryError, "it threw something that is not a std::exception"),
        ('std::runtime_error("")', LibraryError, "an exception without a message"),
    ],
)
def test_a_cpp_exception_returns_its_message_and_the_next_call_is_correct(
    thrown: str, kind: type[Exception], said: str, tmp_path: Path
) -> None:
    throwing = native_case.CPP.replace("    T sum = total;", f"    if (times < 0) throw {thrown};\n    T sum = total;")
    call, given, case = prepared(tmp_path, "gradient", ("x",), cpp="#include <new>\n" + throwing)
    with pytest.raises(kind) as raised:
        call(*given[:4], -1, *given[5:])
    assert str(raised.value) == f"dual_numbers on everything.hpp: {said}"
    (got,) = DUAL.to_numpy(call(*given))
    np.testing.assert_allclose(got, gradient(case, 3)[0], rtol=1e-7)


def test_a_nan_is_a_value_not_an_exception(tmp_path: Path) -> None:
    call, given, _ = prepared(tmp_path, "value_and_gradient", ("a",))
    value, row = call(native(DUAL, float("nan")), *given[1:])
    assert np.isnan(value)
    assert np.isnan(DUAL.to_numpy(row)[0])


def test_a_missing_operator_is_unsupported(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="dual_numbers has no hvp"):
        prepared(tmp_path, "hvp", ("a",))


def test_an_input_type_without_cpp_equivalent_is_unsupported(tmp_path: Path) -> None:
    case = native_case.case(native_case.write(tmp_path))
    names, args, wrt = case.bind(3, 0)
    given = (*(native(DUAL, arg) for arg in args[:6]), None)
    with pytest.raises(Unsupported, match="no input of type NoneType"):
        DUAL.prepare("value", function_of(case, names, Namespace(np)), given, wrt)


def test_a_hand_written_gradient_covers_the_cases_active_inputs(tmp_path: Path) -> None:
    from adbench.catalog.discovery import catalog

    case = catalog().cases["product_plus_constant"]
    names, args, _ = case.bind(1, 0)
    f = function_of(case, names, Namespace(np))
    given = tuple(map(HAND.to_native, args))
    for wrt, expected in (((0, 1), (2.2, 20.6)), ((1,), (20.6,)), ((1, 0), (20.6, 2.2))):
        np.testing.assert_allclose(HAND.to_numpy(HAND.prepare("gradient", f, given, wrt)(*given)), expected)
    weighted = (*given, HAND.to_native(-2.0))
    np.testing.assert_allclose(HAND.to_numpy(HAND.prepare("vjp", f, weighted, (0, 1))(*weighted)), (-4.4, -41.2))
    projectile = catalog().cases["projectile"]
    names, args, _ = projectile.bind(3, 0)
    given = tuple(map(HAND.to_native, args))
    with pytest.raises(Unsupported, match=r"projectile\.hpp has no gradient by hand"):
        HAND.prepare("gradient", function_of(projectile, names, Namespace(np)), given, (2,))


def lines_of_code(file: Path) -> int:
    """Number of lines without blank lines, comments and docstrings."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        text = re.sub(r'^""".*?"""', "", text, flags=re.DOTALL)
    return sum(1 for line in text.splitlines() if line.strip() and not line.lstrip().startswith(("#!", "//", "# ")))


@pytest.mark.slow
def test_a_users_library_is_a_header_and_a_python_file_outside_the_repository(tmp_path: Path) -> None:
    """A new C++ library needs only two short files."""
    files = [EXAMPLES / f"dual_numbers.{suffix}" for suffix in ("hpp", "py")]
    assert sum(map(lines_of_code, files)) <= 60
    for file in files:
        shutil.copy(file, tmp_path)
    case = native_case.write(tmp_path / "cases")
    command = [
        sys.executable,
        "-m",
        "adbench",
        "check",
        "-b",
        str(tmp_path / "dual_numbers.py"),
        "-c",
        str(case),
        "--json",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = {record["job"]["operator"]: record for record in json.loads(done.stdout)["records"]}
    assert {operator for operator, record in found.items() if record["status"] == "ok"} == {
        *("value", "gradient", "value_and_gradient", "jacobian", "jvp", "vjp", "relations")
    }
    assert found["hvp"]["reason"] == "dual_numbers has no hvp"


def test_the_page_shows_the_example_files_and_they_are_correct(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "write-cpp.md").read_text(encoding="utf-8")
    twin, header = (block.partition("```\n")[0] for block in page.split("```cpp\n")[1:])
    assert header == (EXAMPLES / "dual_numbers.hpp").read_text(encoding="utf-8")
    assert f"```python\n{(EXAMPLES / 'dual_numbers.py').read_text(encoding='utf-8')}```\n" in page
    shutil.copy(EXAMPLES / "my_case.py", tmp_path)
    (tmp_path / "my_case.hpp").write_text(twin, encoding="utf-8")
    case = native_case.case(tmp_path / "my_case.py")
    names, args, wrt = case.bind(10, 0)
    given = tuple(map(DUAL.to_native, args))
    (got,) = DUAL.to_numpy(DUAL.prepare("gradient", function_of(case, names, Namespace(np)), given, wrt)(*given))
    np.testing.assert_allclose(got, case.gradient(*args)[0], rtol=1e-13)


@pytest.mark.parametrize(("name", "most"), [("adept", 60), ("codipack", 60), ("fastad", 60), ("sacado", 61)])
def test_the_code_for_one_library_is_short(name: str, most: int) -> None:
    """Libraries that reuse recordings are longer, because they have two or three ways to call the library."""
    assert lines_of_code(builtin_folder("backends") / "native" / f"{name}.hpp") <= most
