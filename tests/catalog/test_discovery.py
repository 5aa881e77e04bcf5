"""Discovery of built-in files and a user's files, and messages about unusable files."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy
import pytest

from adbench.catalog import discovery as module
from adbench.catalog.discovery import builtin_folder, catalog, load, select
from adbench.catalog.selection import configuration, resolve
from adbench.catalog.source import Source
from adbench.model.errors import BadFile, UnknownName, UsageError
from tests.support.files import CASE, RIGHT, write


def test_the_folder_listing_is_the_registry(tmp_path: Path) -> None:
    folder = write(tmp_path, mine=CASE, _helper="x = 1", two=CASE.replace("CASE =", "CASES = {'a': None}; CASE ="))
    (folder / "two.py").write_text(CASE.replace("CASE = Case(", "CASES = {'a': 1}\nCASES['a'] = CASES['b'] = Case("))
    found = catalog(case_paths=[folder])
    assert {"mine", "a", "b", "normal_log_density"} <= set(found.cases)
    assert not {"_helper", "two"} & set(found.cases)
    assert found.case_sources["mine"].summary.startswith("Sum of softplus")


def test_listing_backends_imports_none_of_them() -> None:
    before = set(sys.modules)
    found = catalog()
    assert {"jax", "torch", "autograd", "finite_differences"} <= set(found.backends)
    assert not {name for name in set(sys.modules) - before if name.startswith(("jax", "torch", "autograd"))}
    assert found.backends["jax"].requires == ("jax",)


def test_a_users_file_takes_the_place_of_a_built_in_one(tmp_path: Path) -> None:
    folder = write(tmp_path, recurrence=CASE)
    found = catalog(case_paths=[folder])
    assert found.case_sources["recurrence"].path == str(folder / "recurrence.py")
    assert not found.case_sources["recurrence"].builtin


def test_two_files_of_a_user_with_one_name_are_refused(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a", mine=CASE), write(tmp_path / "b", mine=CASE)
    with pytest.raises(UsageError, match="two cases are called 'mine'"):
        catalog(case_paths=[first, second])
    assert "mine" in catalog(case_paths=[first, first]).cases


def test_files_of_one_folder_may_import_each_other_and_hide_no_library(tmp_path: Path) -> None:
    text = '"""Not the library."""\nimport numpy\nfrom ._shared import value\n'
    folder = write(tmp_path, numpy=text, _shared="value = 7")
    loaded = load(Source("backends", "numpy", str(folder / "numpy.py"), builtin=False))
    assert loaded.value == 7
    assert hasattr(loaded.numpy, "ndarray")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(:", r"broken\.py, line 1: invalid syntax$"),
        ("raise SystemExit(0)", "cannot be imported: SystemExit"),
        ("import no_such_module_at_all", "cannot be imported: ModuleNotFoundError: No module named 'no_such"),
        ("1 / 0", "cannot be imported: ZeroDivisionError"),
        ("x = 1", r"broken\.py: CASE is missing; define CASE = Case\(\.\.\.\)"),
        ("CASE = 3", r"CASE is of type int; define CASE = Case\(\.\.\.\)"),
        ("CASES = {}", "CASE is missing"),
        ("CASES = {'a': 3}", r"CASES\['a'\] is of type int; define CASES\['a'\] = Case\(\.\.\.\)"),
        ("CASES = [3]", "CASES is of type list; define CASES = "),
        ("from adbench import Case\nCASE = Case(f=abs, inputs=dict, wrt='x', sizes=(1,))", "wrt is the string 'x'"),
        (b"\xff\xfe\x00".decode("latin1") + "\0", "not a readable Python file|cannot be imported"),
    ],
)
def test_a_case_file_that_cannot_be_used_is_named_with_its_fault(tmp_path: Path, text: str, message: str) -> None:
    folder = write(tmp_path, broken=text)
    with pytest.raises(BadFile, match=message) as caught:
        catalog(case_paths=[folder])
    assert "broken.py" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", ["name", "'jax'", "('a', 1)", "[x for x in ()]"])
def test_requirements_must_be_plain_texts(tmp_path: Path, value: str) -> None:
    folder = write(tmp_path, mine=f"REQUIRES = {value}\n" + RIGHT)
    with pytest.raises(BadFile, match=r"mine\.py: line 1: REQUIRES must be a tuple"):
        catalog(backend_paths=[folder])


@pytest.mark.parametrize(
    "line",
    [
        "VARIANT_OF = 1",
        "VARIANT_OF: str = ''",
        "DEBIAN = 'libfoo-dev'",
        "HOME = 7",
        "LICENCE = name",
        "BUILDS = 'yes'",
        "DEFAULT = 1",
        "ROLE = 'toy'",
    ],
)
def test_what_a_backend_says_of_itself_must_be_a_literal_of_its_type(tmp_path: Path, line: str) -> None:
    folder = write(tmp_path, mine=f"{line}\n" + RIGHT)
    with pytest.raises(BadFile, match=rf"mine\.py: line 1: {line.split(' ')[0].strip(':')} must be "):
        catalog(backend_paths=[folder])


def test_a_variant_has_what_its_library_says_and_may_import_from_its_file(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        mine='REQUIRES = ["adbench-none"]\nDEBIAN = ("libnone-dev",)\nHOME = "NONE_HOME"\nLICENCE: str = "MIT"\n'
        + 'ROLE = "comparison"\n'
        + RIGHT,
        mine_eager='"""Eager."""\nVARIANT_OF = "mine"\nBUILDS = True\nDEFAULT = False\nfrom .mine import prepare\n',
    )
    found = catalog(backend_paths=[folder]).backends
    variant, library = found["mine_eager"], found["mine"]
    assert (variant.variant_of, variant.builds, library.variant_of, library.builds) == ("mine", True, None, False)
    assert (variant.is_default, library.is_default) == (False, True)
    assert variant.requires == library.requires == variant.missing == ("adbench-none",)
    assert variant.debian == library.debian == ("libnone-dev",)
    assert (variant.licence, variant.home, variant.role) == ("MIT", "NONE_HOME", "comparison")
    assert load(variant).prepare is load(library).prepare


VARIANTS = """
VARIANTS = {
    "mine_fast": {"SUMMARY": "Fast.", "CLAIMED_RELATIVE_ERROR": 1e-3, "DEFAULT": True},
    "mine_slow": {"REQUIRES": ("adbench-none",), "prepare": lambda *given: "slow"},
}
"""


def test_a_file_declares_variants_in_rows_and_a_row_has_the_files_names_for_the_rest(tmp_path: Path) -> None:
    text = 'PRECISION = "float32"\nKNOWN = {"a": "b"}\nDEFAULT = False\nSUMMARY = None\n' + RIGHT + VARIANTS
    folder = write(tmp_path, mine=text)
    backends = catalog(backend_paths=[folder]).backends
    own, fast, slow = (backends[name] for name in ("mine", "mine_fast", "mine_slow"))
    assert (fast.summary, slow.summary, fast.variant_of) == ("Fast.", own.summary, "mine")
    assert (own.precision, fast.precision, slow.requires, own.requires) == ("float32", "float32", ("adbench-none",), ())
    assert (own.known, fast.known) == ({"a": "b"}, {})
    assert (own.is_default, fast.is_default, slow.is_default) == (False, True, True)
    assert load(fast).CLAIMED_RELATIVE_ERROR == 1e-3
    assert not hasattr(load(own), "CLAIMED_RELATIVE_ERROR")
    assert load(fast).prepare is load(own).prepare
    assert load(slow).prepare() == "slow"


def test_a_path_selects_the_backend_of_the_file_and_a_name_after_a_colon_its_variant(tmp_path: Path) -> None:
    file = write(tmp_path, mine=RIGHT + VARIANTS) / "mine.py"
    assert resolve(backends=[str(file)], start=tmp_path).backends == ("mine",)
    chosen = resolve(backends=[f"{file}:mine_slow", str(file)], start=tmp_path)
    assert set(chosen.backends) == {"mine", "mine_slow"}
    assert {source.path for name, source in chosen.catalog.backends.items() if "mine" in name} == {str(file)}


@pytest.mark.parametrize("rows", ["[]", "dict(a={})", "{'a': 1}", "{1: {}}", "{'a': {**b}}", "{'a': {'': 1}}"])
def test_variants_must_be_written_out(tmp_path: Path, rows: str) -> None:
    folder = write(tmp_path, mine=f"VARIANTS = {rows}\n" + RIGHT)
    with pytest.raises(BadFile, match=r"mine\.py: line 1: VARIANTS must be a dict of backends, written out"):
        catalog(backend_paths=[folder])


def test_a_version_is_the_distributions_or_else_that_of_debians_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adbench.catalog.source.packages_of_debian", lambda names: {"libthere-dev": "1.2-3"})
    of_debian = Source("backends", "a", "a.py", builtin=True, debian=("libthere-dev", "libgone-dev"))
    assert (of_debian.version, of_debian.missing_of_debian) == ("1.2-3", ("libgone-dev",))
    both = replace(of_debian, requires=("numpy",))
    assert both.version == numpy.__version__
    assert replace(of_debian, debian=("libgone-dev",)).version is None


def test_a_copy_of_the_users_own_counts_in_the_place_of_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Source(
        "backends", "a", "a.py", builtin=True, requires=("adbench-none",), debian=("libno-dev",), home="A_HOME"
    )
    monkeypatch.delenv("A_HOME", raising=False)
    assert (own.missing, own.missing_of_debian) == (("adbench-none",), ("libno-dev",))
    monkeypatch.setenv("A_HOME", "/opt/a")
    assert (own.missing, own.missing_of_debian) == ((), ())
    assert replace(own, requires=("numpy",)).version is None, "a package's version is not that of the copy"


@pytest.mark.parametrize("name", ["nothing", "jax_of_mine"])
def test_a_variant_of_nothing_or_of_a_variant_is_refused(tmp_path: Path, name: str) -> None:
    folder = write(tmp_path, mine=f"VARIANT_OF = {name!r}\n" + RIGHT, jax_of_mine='VARIANT_OF = "jax"\n' + RIGHT)
    with pytest.raises(BadFile, match=f"VARIANT_OF names '{name}', which is no library's backend; there are: .*jax"):
        catalog(backend_paths=[folder])


def test_a_path_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="no such file or folder of backends"):
        catalog(backend_paths=[tmp_path / "nothing"])


def test_an_unknown_name_lists_those_there_are() -> None:
    known = {"normal": 1, "matrix": 2}
    assert select("case", known, []) == ("normal", "matrix")
    assert select("case", known, ["m*", "normal"]) == ("normal", "matrix")
    with pytest.raises(UnknownName, match="no case 'nope'; there are: matrix, normal"):
        select("case", known, ["normal", "nope"])


def test_a_file_given_by_path_is_loaded_and_selected(tmp_path: Path) -> None:
    folder = write(tmp_path, mine=CASE, other=RIGHT)
    chosen = resolve(cases=[str(folder / "mine.py"), "recurrence"], backends=[str(folder / "other.py")], start=tmp_path)
    assert set(chosen.cases) == {"recurrence", "mine"}
    assert chosen.backends == ("other",)
    assert "mine" in chosen.catalog.cases


def test_the_configuration_adds_folders_relative_to_its_file(tmp_path: Path) -> None:
    write(tmp_path / "mine", one=CASE)
    (tmp_path / "pyproject.toml").write_text('[tool.adbench]\ncases = ["mine"]\n')
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "pyproject.toml").write_text("[project]\n")
    assert "one" in resolve(start=tmp_path / "deep" / "er").catalog.cases


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[tool.adbench]\ncasses = ["x"]', "no key 'casses'; there are: cases, backends"),
        ('[tool.adbench]\ncases = "x"', "cases must be a list of paths; got 'x'"),
        ("[tool.adbench", "cannot be read"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_named_with_its_fault(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(BadFile, match=message):
        configuration(tmp_path)


def test_installed_packages_can_announce_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry point of the group adbench.cases names a package whose folder holds cases."""
    write(tmp_path / "their_cases", __init__="", announced=CASE)
    information = tmp_path / "theirs-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[adbench.cases]\ntheirs = their_cases\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "announced" in catalog().cases


def test_built_in_folders_are_in_the_package_or_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert builtin_folder("cases").is_dir()
    package = tmp_path / "adbench"
    (package / "suite").mkdir(parents=True)
    (tmp_path / "cases").mkdir()
    monkeypatch.setattr(module, "__file__", str(package / "suite" / "catalog.py"))
    assert builtin_folder("cases") == tmp_path / "cases"
    (package / "cases").mkdir()
    assert builtin_folder("cases") == package / "cases"
