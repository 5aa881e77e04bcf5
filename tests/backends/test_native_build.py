"""Build shared objects from C++ implementations: caching by content, rebuilding, and errors."""

from __future__ import annotations

import multiprocessing
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adbench import CppLibrary, Namespace, Unsupported
from adbench.catalog.discovery import builtin_folder
from adbench.execution.native import build
from adbench.execution.native.build import BuildError
from adbench.model.case import function_of
from tests.backends import native_case
from tests.support.marks import one_in

NATIVE = builtin_folder("backends") / "native"
DUAL = Path(__file__).parents[2] / "docs" / "examples" / "dual_numbers.hpp"
PLAIN = NATIVE / "cpp_plain.hpp"

pytestmark = pytest.mark.skipif(shutil.which(os.environ.get("CXX", "c++")) is None, reason="there is no C++ compiler")

SQUARE = '''
"""x² + y²."""
from adbench import Case
CASE = Case(f=lambda xp, x, y: x * x + y * y, inputs=lambda n, rng: {"x": 3.0, "y": 2.0}, wrt=("x",), sizes=(1,))
'''
TWIN = """
#include "adbench.hpp"
template <class T, class X, class Y> T f(const X& x, const Y& y) { return x * x + y * y; }
"""


@pytest.fixture(autouse=True)
def _builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A separate cache for each test."""
    monkeypatch.setenv("ADBENCH_BUILDS", str(tmp_path / "builds"))
    for cached in (build.compiler, build.compiler_version, build.include_folders):
        cached.cache_clear()
    yield
    for cached in (build.compiler, build.compiler_version, build.include_folders):
        cached.cache_clear()


def square(folder: Path, twin: str = TWIN) -> Any:
    """Write the case and return it as a function of its inputs, with its arguments."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "square.py").write_text(SQUARE, encoding="utf-8")
    (folder / "square.hpp").write_text(twin, encoding="utf-8")
    return loaded(folder)


def loaded(folder: Path) -> Any:
    """Like `square` for an existing case, so that processes sharing it never read half a file."""
    case = native_case.case(folder / "square.py")
    names, args, wrt = case.bind(1, 0)
    return function_of(case, names, Namespace(np)), args, wrt


def value(library: CppLibrary, made: Any, operator: Any = "value") -> Any:
    f, args, wrt = made
    native = tuple(library.to_native(arg) for arg in args)
    return library.to_numpy(library.prepare(operator, f, native, wrt)(*native))


def built(capsys: pytest.CaptureFixture[str]) -> int:
    """Number of compiler calls since the last call of this function."""
    return capsys.readouterr().err.count("adbench: building")


def test_builds_are_found_by_content(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    library = CppLibrary(PLAIN)
    assert value(library, square(tmp_path / "a")) == 13.0
    assert built(capsys) == 1
    assert value(library, square(tmp_path / "a")) == 13.0
    assert value(library, square(tmp_path / "elsewhere")) == 13.0  # the same source in another folder
    assert built(capsys) == 0
    assert value(library, square(tmp_path / "a", TWIN.replace("y * y", "y"))) == 11.0
    assert built(capsys) == 1
    assert not list((tmp_path / "builds").glob("*.cpp"))


def test_an_included_header_is_part_of_the_content(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    twin = TWIN.replace("\ntemplate", '\n#include "more.hpp"\ntemplate').replace("y * y", "more * y")
    made = square(tmp_path, twin)
    for number, expected in ((1.0, 11.0), (2.0, 13.0)):
        (tmp_path / "more.hpp").write_text(f"constexpr double more = {number};", encoding="utf-8")
        assert value(CppLibrary(PLAIN), made) == expected
        assert built(capsys) == 1


@pytest.mark.slow
def test_different_flags_need_a_separate_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = square(tmp_path)
    for flags in ((), ("-DNOTHING",)):
        library = CppLibrary(PLAIN, needs="cmath", flags=flags)
        assert value(library, made) == 13.0
        assert built(capsys) == 1


@pytest.mark.parametrize("damage", one_in(3, ["cut", "changed", "emptied"]))
def test_a_damaged_build_is_rebuilt(damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, library = square(tmp_path), CppLibrary(PLAIN)
    assert value(library, made) == 13.0
    assert built(capsys) == 1
    (entry,) = (tmp_path / "builds").glob("*.so")
    data = entry.read_bytes()
    harm = {"cut": data[: len(data) // 2], "changed": data[:-100] + bytes(100), "emptied": b""}[damage]
    entry.unlink()  # create a new file: the old one is mapped into this process
    entry.write_bytes(harm)
    assert value(library, made) == 13.0
    assert built(capsys) == 1


@pytest.mark.slow
def test_a_damaged_precompiled_header_is_ignored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    library = CppLibrary(PLAIN, precompile=True)
    assert value(library, square(tmp_path)) == 13.0
    (ready,) = (tmp_path / "builds").glob("*.gch")
    ready.write_bytes(ready.read_bytes()[:1000])
    assert value(library, square(tmp_path, TWIN.replace("y * y", "y"))) == 11.0
    assert "precompiling" in capsys.readouterr().err


def build_in_child(folder: str, builds: str, started: Any, queue: Any) -> None:
    os.environ["ADBENCH_BUILDS"] = builds
    started.wait()
    queue.put(float(value(CppLibrary(PLAIN), loaded(Path(folder)))))


def test_two_processes_can_build_the_same_library_at_once(tmp_path: Path) -> None:
    square(tmp_path / "case")
    context = multiprocessing.get_context("spawn")
    queue: Any = context.Queue()
    started = context.Event()
    arguments = (str(tmp_path / "case"), str(tmp_path / "builds"), started, queue)
    children = [context.Process(target=build_in_child, args=arguments) for _ in range(3)]
    for child in children:
        child.start()
    started.set()
    assert [queue.get(timeout=120) for _ in children] == [13.0] * 3
    for child in children:
        child.join()
    assert len(list((tmp_path / "builds").glob("*.so"))) == 1
    assert not list((tmp_path / "builds").glob("*.so.*"))


def test_a_missing_compiler_is_unsupported_with_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(Unsupported, match=r"C\+\+ compiler.*on Debian: apt install g\+\+"):
        CppLibrary(PLAIN, flags=("-DANOTHER",)).found()
    monkeypatch.setenv("CXX", "no-such-compiler -m64")
    build.compiler.cache_clear()
    with pytest.raises(Unsupported, match=r"\$CXX .*'no-such-compiler'"):
        CppLibrary(PLAIN, flags=("-DA_THIRD",)).found()


def test_cxx_may_contain_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", f"{build.compiler()[0]} -DWITH=13.0")
    build.compiler.cache_clear()
    assert value(CppLibrary(PLAIN, precompile=True), square(tmp_path, TWIN.replace("x * x + y * y", "T(WITH)"))) == 13.0


def test_a_compile_error_shows_the_first_message_and_the_log(tmp_path: Path) -> None:
    made = square(tmp_path, TWIN.replace("y * y", "nothing_of_that_name"))
    with pytest.raises(BuildError) as raised:
        value(CppLibrary(PLAIN), made)
    said = str(raised.value)
    assert "\n" not in said
    assert said.startswith("cpp_plain of square: square.hpp:3:")
    assert "'nothing_of_that_name' was not declared in this scope" in said
    log = Path(said.rpartition(" ")[2])
    assert "nothing_of_that_name" in log.read_text(encoding="utf-8")
    assert log.read_text(encoding="utf-8").startswith(build.compiler()[0])


def test_a_failed_compilation_is_not_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = square(tmp_path, TWIN.replace("y * y", "nothing_else_of_that_name"))
    for _ in range(3):
        with pytest.raises(BuildError, match="nothing_else_of_that_name"):
            value(CppLibrary(PLAIN), made)
    assert built(capsys) == 1


def test_a_function_that_the_library_lacks_is_unsupported_not_broken(tmp_path: Path) -> None:
    """The implementation is valid C++: it compiles without the library."""
    made = square(tmp_path, TWIN.replace("return x * x", "using std::sinh; return sinh(x)"))
    library = CppLibrary(DUAL, needs="cmath")
    with pytest.raises(Unsupported, match=r"dual_numbers of square: square.hpp:3:.* error: .*sinh"):
        value(library, made, "gradient")
    assert value(CppLibrary(PLAIN), made) == pytest.approx(np.sinh(3.0) + 4.0)


def test_a_missing_header_is_unsupported_and_lists_the_searched_folders(tmp_path: Path) -> None:
    prefixes = (str(tmp_path / "mylib"), "$NOT_SET", "no-such-dist:mylib")
    library = CppLibrary(DUAL, needs="mylib/mylib.hpp", prefixes=prefixes, get="apt install libmylib-dev")
    with pytest.raises(Unsupported) as raised:
        library.found()
    said = str(raised.value)
    assert said.startswith(f"mylib/mylib.hpp was not found in {tmp_path}/mylib/include, $NOT_SET, no-such-dist:mylib, ")
    assert "/usr/include" in said
    assert said.endswith("; apt install libmylib-dev")


def test_a_home_variable_without_the_header_is_an_error_with_no_fallback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = tmp_path / "packaged" / "include"
    headers.mkdir(parents=True)
    (headers / "mylib.hpp").write_text("#pragma once\n")
    library = CppLibrary(DUAL, needs="mylib.hpp", prefixes=("$MYLIB_HOME", str(tmp_path / "packaged")))
    assert library.found().include == headers
    monkeypatch.setenv("MYLIB_HOME", str(tmp_path / "elsewhere"))
    with pytest.raises(Unsupported, match=r"\$MYLIB_HOME is .*elsewhere, which has no include/mylib.hpp; set it to"):
        library.found()


def test_a_library_is_found_by_variable_distribution_or_compiler_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = tmp_path / "mylib" / "include" / "mylib.hpp"
    header.parent.mkdir(parents=True)
    header.write_text("constexpr double from_mylib = 4.0;", encoding="utf-8")
    monkeypatch.setenv("MYLIB_HOME", str(tmp_path / "mylib"))
    ours = tmp_path / "ours.hpp"
    ours.write_text("#include <mylib.hpp>\n" + PLAIN.read_text(encoding="utf-8"), encoding="utf-8")
    library = CppLibrary(ours, needs="mylib.hpp", prefixes=("$MYLIB_HOME",))
    assert value(library, square(tmp_path, TWIN.replace("y * y", "from_mylib"))) == 13.0
    place = CppLibrary(DUAL, needs="core/include/numpy/arrayobject.h".rpartition("include/")[2],
                       prefixes=("numpy:numpy/_core",)).found()  # fmt: skip
    assert any("numpy/_core/include" in option for option in place.options)
    assert CppLibrary(DUAL, needs="cmath").found().links == ()


@pytest.mark.slow
def test_another_library_version_needs_a_separate_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from adbench.execution.native import library as module

    header = tmp_path / "mylib" / "include" / "mylib.hpp"
    header.parent.mkdir(parents=True)
    monkeypatch.setenv("MYLIB_HOME", str(tmp_path / "mylib"))
    ours = tmp_path / "ours.hpp"
    ours.write_text("#include <mylib.hpp>\n" + PLAIN.read_text(encoding="utf-8"), encoding="utf-8")
    made = square(tmp_path, TWIN.replace("y * y", "from_mylib"))
    for number in (4.0, 40.0):
        header.write_text(f"constexpr double from_mylib = {number};", encoding="utf-8")
        module._found.cache_clear()  # like another process
        assert value(CppLibrary(ours, needs="mylib.hpp", prefixes=("$MYLIB_HOME",)), made) == 9.0 + number
        assert built(capsys) == 1


def test_the_build_is_a_separate_phase(tmp_path: Path) -> None:
    from adbench.measure.phases import collecting

    made = square(tmp_path)
    with collecting() as first:
        value(CppLibrary(PLAIN), made)
    with collecting() as again:
        value(CppLibrary(PLAIN), made)
    assert first["build"] > 0
    assert "build" not in again


def test_a_case_without_cpp_names_the_missing_file(tmp_path: Path) -> None:
    f, args, wrt = square(tmp_path)
    (tmp_path / "square.hpp").unlink()
    with pytest.raises(Unsupported, match=r"there is no square\.hpp"):
        CppLibrary(PLAIN).prepare("value", f, args, wrt)
    with pytest.raises(Unsupported, match="no case"):
        CppLibrary(PLAIN).prepare("value", lambda x: x, args, wrt)
