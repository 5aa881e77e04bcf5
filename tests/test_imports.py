"""Imports go one way, without circles; folders stay small; the parent imports no backend."""

import ast
import subprocess
import sys
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST_MODULES = 12

# What each part of the house may import of the others; `tape`, `vocabulary` and `measure` stand alone.
# `sealed_folder` and `optional` know nothing of ours.
ALLOWED: dict[str, set[str]] = {
    "adbench.tape": {"sealed_folder", "optional"},
    "adbench.vocabulary": set(),
    "adbench.oracle": {"vocabulary", "sealed_folder", "optional"},
    "adbench.measure": {"optional"},
    "adbench.audit": {"optional"},
    "adbench.model": {"vocabulary", "oracle", "measure", "optional"},
    "adbench.catalog": {"model", "oracle", "optional"},
    "adbench.results": {"model", "oracle", "measure", "catalog", "version"},
    "adbench.functions": {"vocabulary", "model", "oracle", "catalog"},
    "adbench.execution": {
        "model",
        "oracle",
        "measure",
        "catalog",
        "functions",
        "results",
        "sealed_folder",
        "version",
        "optional",
    },
    "adbench.findings": {"vocabulary", "model", "oracle", "measure", "catalog", "functions", "execution", "version"},
    "adbench.bisection": {"model", "measure", "catalog", "execution", "results"},
    "adbench.atlas": {"model", "catalog", "bisection", "findings", "results", "execution"},
    "adbench.doctor": {"model", "measure", "catalog", "version", "optional"},
    "adbench.interop": {"model", "measure", "catalog", "results", "execution", "version", "optional"},
    "adbench.reports": {
        "model",
        "oracle",
        "measure",
        "catalog",
        "results",
        "execution",
        "findings",
        "atlas",
        "bisection",
        "doctor",
        "audit",
        "tape",
        "version",
        "optional",
    },
    "adbench.cli": {
        "model",
        "measure",
        "catalog",
        "functions",
        "results",
        "execution",
        "findings",
        "bisection",
        "atlas",
        "doctor",
        "audit",
        "interop",
        "reports",
        "optional",
        "version",
    },
    "adbench.__main__": {"cli"},
    "adbench": set(),
    "adbench.python_run": {"model", "catalog", "execution", "reports", "runs"},
    "adbench.runs": {"model", "catalog", "results", "reports", "optional"},
    "adbench.pytest_plugin": {"model", "functions", "execution", "audit", "reports", "optional"},
    "adbench.optional": set(),
    "adbench.sealed_folder": set(),
    "adbench.version": set(),
}
OUTSIDE = {"backends", "cases", "tests", "scripts"}
SAME_NAME_ON_PURPOSE = {
    "atlas", "audit", "bisect", "compare", "conform", "doctor", "explain", "history",  # a verb: options, logic, report
    "inventory",  # the rows of `adbench list`, and their table
    "namespace",  # the oracle's, and that of the library
}  # fmt: skip
SAME_CLASS_NAME_ON_PURPOSE = {
    "Run",  # `adbench.Run` is the record of a run with methods for users, who see only this one
}


@cache
def modules() -> dict[str, Path]:
    """Name -> file, of everything in `adbench`, of which `reports` is a part."""
    parts = [*ROOT.glob("adbench/**/*.py"), *(ROOT / "adbench").glob("reports/**/*.py")]
    files = dict.fromkeys(parts)  # the link to `reports` is followed by some Pythons
    names = (".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for file in files)
    return dict(zip(names, files, strict=True))


@cache
def imported(name: str, file: Path) -> set[str]:
    """The absolute names that a module imports, wherever in it, also for the type checker alone."""
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            base = ".".join(parents[: len(parents) + 1 - node.level]) if node.level else ""
            base = ".".join(filter(None, (base, node.module)))
            for alias in node.names:
                full = f"{base}.{alias.name}"
                found.add(full if full in modules() else base)
    return found - {name}


def part_of(name: str) -> str:
    """The part of the house that a module of `adbench` belongs to."""
    return ".".join(name.split(".")[:2])


def stranger(module: str, name: str) -> bool:
    """Whether `module` of adbench must not import `name`."""
    top = name.partition(".")[0]
    part = part_of(module)
    if top in OUTSIDE:
        return True
    return top == "adbench" and part_of(name) != part and part_of(name) not in {f"adbench.{x}" for x in ALLOWED[part]}


def test_imports_go_one_way() -> None:
    wrong = [
        f"{name} imports {other}"
        for name, file in modules().items()
        for other in imported(name, file)
        if name.startswith("adbench") and stranger(name, other)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_engine_does_not_know_its_plug_in() -> None:
    plug_in = "adbench.tape.pqr"
    assert not [
        name
        for name, file in modules().items()
        if not name.startswith(plug_in) and any(other.startswith(plug_in) for other in imported(name, file))
    ]


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {name: imported(name, file) & set(modules()) for name, file in modules().items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a circle: {' <- '.join(error.args[1])}")


def test_no_folder_holds_more_modules_than_one_can_keep_in_mind() -> None:
    counted = Counter(file.parent for file in modules().values() if file.name != "__init__.py")
    crowded = {str(folder.relative_to(ROOT)): n for folder, n in counted.items() if n > MOST_MODULES}
    assert not crowded


def test_no_two_modules_have_one_name_for_different_things() -> None:
    counted = Counter(file.stem for file in modules().values() if file.name != "__init__.py")
    twice = {stem for stem, n in counted.items() if n > 1}
    assert twice == SAME_NAME_ON_PURPOSE


def test_no_two_classes_have_one_name() -> None:
    counted = Counter(
        node.name
        for file in (*modules().values(), *ROOT.glob("backends/**/*.py"))
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    )
    assert {name for name, n in counted.items() if n > 1} == SAME_CLASS_NAME_ON_PURPOSE


def test_the_rule_sees_an_import_that_goes_the_wrong_way() -> None:
    assert stranger("adbench.tape.core.rule", "adbench.model.case")
    assert stranger("adbench.execution.session", "adbench.tape")
    assert stranger("adbench.oracle.verdict", "cases.recurrence")
    assert stranger("adbench.results.store", "adbench.execution.session")
    assert not stranger("adbench.execution.session", "adbench.oracle.verdict")


def modules_after(program: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{program}\nprint(*sys.modules)"],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    return set(done.stdout.split())


def test_the_version_needs_neither_numpy_nor_any_backend() -> None:
    """The 150 ms that `adbench --version` may take are spent on imports, so the imports are what is asserted."""
    loaded = modules_after(
        "from adbench.cli import main\nsys.argv = ['adbench', '--version']\ntry: main()\nexcept SystemExit: pass"
    )
    assert not loaded & {
        "numpy",
        "scipy",
        "matplotlib",
        "rich",
        "jax",
        "torch",
        "autograd",
        "msgspec",
        "optree",
        "flint",
    }


def test_the_parent_imports_no_backend_and_no_optional_library_to_plan_a_run() -> None:
    loaded = modules_after("from adbench.execution.session import prepare\nprepare(quick=True)")
    assert not loaded & {"jax", "jaxlib", "torch", "autograd", "scipy", "matplotlib", "llvmlite"}


def test_a_worker_that_only_measures_does_not_import_what_computes_references() -> None:
    """It starts in each launch, once for each backend."""
    heavy = {"flint", "scipy", "adbench.oracle.series", "adbench.oracle.compute", "adbench.functions.user_function"}
    assert not heavy & modules_after("import adbench.execution.workers.worker")


FUNCTION = "import numpy as np\n\ndef f(x, y):\n    return np.sin(x) * y\n"


def test_a_check_of_a_users_function_loads_few_modules(tmp_path: Path) -> None:
    """On the command line, in the process that waits for the worker."""
    (tmp_path / "mine.py").write_text(FUNCTION, encoding="utf-8")
    argv = ["adbench", "check", "--function", f"{tmp_path}/mine.py:f", "--at", "1", "2"]
    loaded = modules_after(f"from adbench.cli import main\nsys.argv = {argv}\ntry: main()\nexcept SystemExit: pass")
    ours = {name for name in loaded if name.startswith("adbench.")}
    assert "adbench.execution.phases.check_phase" in ours
    assert len(ours) <= 90  # eleven of them are the files of operators
    families = (
        "tape",
        "cases",
        "reports.figures",
        "reports.content",
        "execution.cluster",
        "execution.planning.forecast",
    )
    assert not [name for name in ours if name.startswith(tuple(f"adbench.{family}" for family in families))]


def test_a_check_in_python_loads_no_case(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FUNCTION, encoding="utf-8")
    loaded = modules_after(
        f"sys.path.insert(0, {str(tmp_path)!r})\nimport adbench, mine\nadbench.check(mine.f, 1.0, 2.0)"
    )
    assert "adbench.tape" in loaded
    assert not [name for name in loaded if name.startswith(("adbench.cases", "adbench.reports"))]
