"""References need double precision; single precision is judged by its own noise, or refused."""

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adbench
from adbench.catalog import ad_hoc
from adbench.catalog.dependencies import dependencies, digest
from adbench.execution.session import prepare
from adbench.model.errors import BadFile
from adbench.model.record import Record
from adbench.oracle.compute import reference
from adbench.oracle.operators import judge_operator
from adbench.oracle.reference import Reference
from adbench.oracle.verdict import Verdict
from tests.model.test_backend import backend
from tests.oracle.scalars import subject_of
from tests.support.files import RIGHT, write
from tests.support.marks import mostly_slow

OF = {
    "jax": "import jax.numpy as jnp\nW = jnp.array([0.1, 0.2, 0.3])\ndef f(x): return jnp.sum(W * jnp.sin(x) ** 2)\n",
    "torch": "import torch\nL = torch.nn.Linear(3, 4)\ndef f(x): return torch.sum(torch.tanh(L(x)) ** 2)\n",
    "autograd": "from near import power\nimport numpy as np\ndef f(x): return np.sum(np.sin(x) ** power())\n",
}
IN_SINGLE = "import jax.numpy as jnp\ndef f(x): return jnp.sum(jnp.sin(x.astype(jnp.float32)) ** 2)\n"
AT_RANDOM = "import numpy as np\nW = np.random.default_rng().normal(size=3)\ndef f(x): return np.sum(W * x)\n"
X = np.array([0.3, -1.2, 0.7])


@pytest.fixture(autouse=True)
def _forgets(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo the imports and settings of a command in this process."""
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    before = list(sys.meta_path)
    for name in ("mine", "near"):  # also from another test
        sys.modules.pop(name, None)
    yield
    sys.meta_path[:] = before
    for name in ("mine", "near"):
        sys.modules.pop(name, None)


def of_command(function: str, *names: str) -> dict[str, Record]:
    """The records of `adbench check --function ... -b ...`, by operator; of several backends the last."""
    asked = {"backends": names, "operators": ("value", "gradient", "hvp")}
    file = ad_hoc.ad_hoc(function, ("1.0", "2.0", "3.0")).case_file()
    session = prepare(cases=(str(file),), **asked, time=False, memory=False, quick=True)
    for _ in session.events():
        pass
    return {record.job.operator: record for record in session.result().records}


def word(record: Record) -> str:
    return "none" if record.verdict is None else record.verdict.word


@pytest.mark.parametrize("name", mostly_slow(OF, fast=("jax",)))
def test_the_reference_of_a_users_function_is_in_double_precision(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """x64 is off in the worker of the reference, and torch creates float32: a correct library was called wrong."""
    write(tmp_path, mine=OF[name], near="def power(): return 2\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADBENCH_CACHE", str(tmp_path / "cache"))
    found = of_command("mine:f", name)
    for operator in ("value", "gradient"):
        assert word(found[operator]) == "right", found[operator]
    assert found["hvp"].status == "ok"


def test_a_function_that_converts_to_float32_is_judged_by_its_tolerance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, mine=IN_SINGLE)
    monkeypatch.chdir(tmp_path)
    found = of_command("mine:f", "jax")
    assert {operator: word(found[operator]) for operator in found} == dict.fromkeys(
        ("value", "gradient", "hvp"), "right"
    )
    assert found["gradient"].verdict.digits < 8  # type: ignore[union-attr]  # it has a verdict


def test_a_function_that_differs_between_processes_blames_no_backend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, mine=AT_RANDOM)
    monkeypatch.chdir(tmp_path)
    assert word(of_command("mine:f", "autograd")["gradient"]) == "right"  # one process computes the reference too
    found = of_command("mine:f", "autograd", "tape")["gradient"]
    assert found.status == "failed"
    assert "different values in different processes" in (found.reason or "")


@pytest.mark.slow
def test_a_change_in_a_neighbouring_file_makes_a_new_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADBENCH_CACHE", str(tmp_path / "cache"))
    for power in (2, 3):
        write(tmp_path, mine=OF["autograd"], near=f"def power(): return {power}\n")
        assert word(of_command("mine:f", "autograd")["gradient"]) == "right"


def test_dependencies_are_local_sources_and_library_versions(tmp_path: Path) -> None:
    write(tmp_path, mine="import numpy\nimport os\nfrom near import g\nfrom pkg.deep import h\n", near="g = 1\n")
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "deep.py").write_text("from . import other\n\ndef h():\n    import scipy.special\n")
    (tmp_path / "pkg" / "other.py").write_text("import jax\n")
    found = dependencies(tmp_path / "mine.py")
    texts = {Path(name).name for name in found if name.endswith(".py")}
    assert texts == {"mine.py", "near.py", "__init__.py", "deep.py", "other.py"}
    assert found["numpy"] == np.__version__
    assert {"scipy", "jax", "jaxlib"} <= found.keys()
    assert "torch" not in found
    (tmp_path / "pkg" / "other.py").write_text("import torch\n")
    changed = dependencies(tmp_path / "mine.py")
    assert "torch" in changed
    assert digest(changed) != digest(found) == digest(dict(found))


def test_noise_inside_a_black_box_is_measured() -> None:
    """float32 inside, float64 outside: the type of the value reveals nothing."""

    def f(x: Any) -> Any:
        return np.sum(np.sin(x.astype(np.float32)) ** 2).astype(np.float64)

    known = reference(subject_of(f, (X,), (0,)))
    right = np.sin(2 * X)
    verdict = judge_operator("gradient", (right,), known)
    assert verdict.word == "verified", verdict.sentence
    assert judge_operator("gradient", (right * (1 + 1e-2),), known).word == "wrong"


# Libraries that compute in single precision


def of_sines() -> Reference:
    def text(xp: Any, x: Any) -> Any:
        return xp.sum(xp.sin(x) ** 2)

    return reference(subject_of(lambda x: text(np, x), (X.astype(np.float32),), (0,), text=text))


def judged(error: float, *, single: bool = True) -> Verdict:
    x = X.astype(np.float32)
    gradient = 2 * np.sin(x) * np.cos(x) * np.float32(1 + error)
    return judge_operator("gradient", (gradient,), of_sines(), single=single)


def test_declared_float32_is_judged_by_its_own_noise() -> None:
    assert judged(0.0).word == "right"
    assert judged(0.0).sentence.startswith("in float32: ")
    assert judged(1e-4).word == "wrong"
    assert judged(1e-4).sentence.startswith("in float32: ")
    refused = judged(0.0, single=False)
    assert refused.word == "wrong"
    assert "must be float64; it is float32" in refused.sentence
    assert 'PRECISION = "float32"' in refused.sentence


def test_a_backend_that_declares_float32_and_returns_float64_is_judged_as_double() -> None:
    right = np.sin(2 * X.astype(np.float32).astype(np.float64))
    assert judge_operator("gradient", (right * (1 + 1e-7),), of_sines(), single=True).word == "wrong"


def test_a_reference_by_differences_allows_float32_more_rounding_than_its_own() -> None:
    """Such a reference has no noise. This is the log density of a normal distribution, summed term by term."""
    y, scale = np.random.default_rng(0).normal(1.0, 1.0, 100_000).astype(np.float32), np.float32(2.0)
    constant = np.float32(math.log(2.0) + 0.5 * math.log(2 * math.pi))

    def f(y: Any, scale: Any) -> Any:
        return -0.5 * np.sum((y / scale) ** 2) - len(y) * (np.log(scale) + 0.5 * math.log(2 * math.pi))

    known = reference(subject_of(f, (y.astype(np.float64), float(scale)), (1,)))
    squares = np.cumsum((y / scale) ** 2, dtype=np.float32)[-1]
    value, slope = np.float32(-0.5) * squares - len(y) * constant, (squares - len(y)) / scale
    assert known.scalar.value.noise == 0
    assert abs(value - known.scalar.value.lower) > 16 * 2.0**-24 * abs(value)
    assert judge_operator("value", value, known, single=True).word == "right"
    assert judge_operator("value", value * np.float32(1 + 1e-4), known, single=True).word == "wrong"
    assert judge_operator("gradient", (slope,), known, single=True).word == "verified"
    assert judge_operator("gradient", (np.float32(2.0) * slope,), known, single=True).word == "wrong"


def test_a_number_too_large_for_float32_is_not_its_fault() -> None:
    def text(xp: Any, x: Any) -> Any:
        return 1e30 * x**4

    known = reference(subject_of(lambda x: text(np, x), (1e3,), (0,), text=text))
    assert judge_operator("gradient", (np.float32(np.inf),), known, single=True).word == "blind"


SINGLE_JAX = """
import jax
import numpy as np
from adbench import Namespace, Unsupported, on_active

REQUIRES = ("jax",)
PRECISION = "float32"
xp = Namespace(jax.numpy)


def to_native(leaf):
    return jax.numpy.array(leaf, dtype=jax.numpy.float32)


OPERATIONS = {"gradient": lambda g, x: jax.grad(g)(x), "hvp": lambda g, x, v: jax.jvp(jax.grad(g), (x,), (v,))[1]}


def prepare(operator, f, args, wrt):
    if operator not in ("value", *OPERATIONS):
        raise Unsupported(f"no {operator}")
    call = f if operator == "value" else on_active(OPERATIONS[operator], operator, f, wrt)
    return lambda *args: jax.tree.map(lambda leaf: FACTOR * leaf, call(*args))
"""
CASE = """
from adbench import Case


def f(xp, x):
    return xp.sum(xp.sin(x) * xp.exp(x))


CASE = Case(f=f, inputs=lambda n, rng: {"x": 10 * rng.normal(size=n)}, wrt=("x",), sizes=(5,))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("factor", "word"), [("1", "right"), ("(1 + 1e-3)", "wrong")])
def test_a_library_in_float32_is_checked_from_end_to_end(factor: str, word: str, tmp_path: Path) -> None:
    """At inputs rounded to float32, because sin at 30 would otherwise differ by the rounding of its argument."""
    write(tmp_path, oscillation=CASE, single=SINGLE_JAX.replace("FACTOR", factor))
    session = prepare(
        backends=[str(tmp_path / "single.py")], cases=[str(tmp_path / "oscillation.py")], time=False, memory=False
    )
    for _ in session.events():
        pass
    found = {record.job.operator: record for record in session.result().records}
    for operator in ("value", "gradient", "hvp"):
        verdict = found[operator].verdict
        assert verdict is not None, found[operator]
        assert verdict.word in ((word, "verified") if word == "right" else (word,)), (operator, verdict.sentence)
        assert verdict.sentence.startswith("in float32: ")
    # Relations do not repeat faults of operators.
    assert found["relations"].status == "ok", found["relations"].reason


def test_a_users_float32_inputs_are_converted_and_reported() -> None:
    found = adbench.check(lambda xp, x: xp.sum(xp.sin(x)), X.astype(np.float32), backend="jax")
    assert found.word == "right"
    assert found.notes == ("checked in float64 on the CPU, though given as float32: x",)


def test_another_precision_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="PRECISION"):
        backend(tmp_path, RIGHT + '\nPRECISION = "float16"\n')
