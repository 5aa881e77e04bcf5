"""Cases in a type below float64: their inputs, their verdicts, refusals, and runs that are not compared."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adbench.catalog.discovery import catalog
from adbench.catalog.source import Source
from adbench.execution.operators.prepared_point import point
from adbench.execution.operators.relations import sentences
from adbench.execution.planning.plan import plan
from adbench.execution.planning.request import Request
from adbench.execution.session import prepare
from adbench.execution.workers.worker import WorkerState, answer
from adbench.model.case import Case
from adbench.model.errors import BadFile, Unsupported, UsageError
from adbench.model.record import Relations
from adbench.model.serialization import from_plain, to_plain
from adbench.oracle.evidence import PRECISIONS
from adbench.oracle.verdict import Verdict
from adbench.results.comparison_inputs import differences, machine_of
from tests.reports import runs
from tests.support.files import CASE, write

LOW = '''"""The gradient of softplus by hand, rounded to a type after each operation."""
from adbench import Unsupported
from adbench.oracle.evidence import PRECISIONS

DTYPES = ("float32", "bfloat16", "float16")
FORM = []


def use_dtype(name):
    FORM.append(PRECISIONS[name])


def to_native(leaf):
    return FORM[-1].rounded(leaf)


def prepare(operator, f, args, wrt):
    import numpy as np

    if operator == "gradient":
        rounded = FORM[-1].rounded
        return lambda x: (rounded(FACTOR / rounded(1 + rounded(np.exp(-x)))),)
    if operator == "jvp":
        return lambda x, v: FORM[-1].rounded((v[0] / (1 + np.exp(-x))).sum())
    raise Unsupported("by hand: only the gradient")
'''


def judged(folder: Path, dtype: str, factor: float | str, operator: str = "gradient") -> Verdict:
    """The verdict of a worker on the hand-written derivative, times a factor."""
    worker, asked, known = with_reference(folder, dtype, factor, operator)
    prepared = answered(worker, do="prepare", operator=operator, reference=known, **asked)
    return from_plain(prepared["verdict"], Verdict)


def with_reference(folder: Path, dtype: str, factor: float | str, operator: str) -> tuple[WorkerState, Any, Any]:
    """A worker that has loaded the derivative, the fields of its requests, and the reference."""
    folder = folder / f"{dtype} {str(factor).replace('/', 'over')} {operator}"  # a module is imported once
    folder.mkdir()
    write(folder, softplus=CASE, low=LOW.replace("FACTOR", str(factor)))
    case = Source("cases", "softplus", str(folder / "softplus.py"), builtin=False)
    source = Source("backends", "low", str(folder / "low.py"), builtin=False, dtypes=("float32", "bfloat16", "float16"))
    worker, asked = WorkerState(), {"case": to_plain(case), "size": 10, "seed": 0, "dtype": dtype}
    effort = {"cache": None, "reference_seconds": 2.0, "second_order": False, "hessian": False}
    answered(worker, do="load", source=to_plain(source), dtype=dtype)
    return worker, asked, answered(worker, do="reference", **asked, **effort)


def answered(worker: WorkerState, **request: Any) -> Any:
    found = answer(worker, request)
    assert "value" in found, found
    return found["value"]


@pytest.mark.parametrize(("dtype", "fault"), [("float32", 1e-5), ("float16", 0.03), ("bfloat16", 0.25)])
def test_a_result_is_right_where_the_rounding_of_the_type_explains_its_error(
    tmp_path: Path, dtype: str, fault: float
) -> None:
    right = judged(tmp_path, dtype, 1.0)
    assert right.word in ("right", "verified"), right.sentence
    assert right.sentence.startswith(f"in {dtype}: ")
    assert "ulp, where rounding explains" in right.sentence
    assert right.ulp is not None
    assert right.ulp.median <= right.ulp.worst <= min(4.0, right.ulp.explained)
    wrong = judged(tmp_path, dtype, 1.0 + fault)
    assert wrong.word == "wrong", wrong.sentence
    assert wrong.ulp is not None
    assert wrong.ulp.worst > wrong.ulp.explained


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_relations_between_calls_hold_in_the_type_and_a_stale_result_breaks_them(tmp_path: Path, dtype: str) -> None:
    def broken(factor: str) -> list[str]:
        worker, asked, known = with_reference(tmp_path, dtype, factor, "relations")
        checked = answered(worker, do="relations", operator="relations", reference=known, **asked)
        return sentences(from_plain(checked, Relations), [])

    assert not broken("1.0")
    assert broken("(FORM.append(FORM[-1]) or len(FORM) / 8)")  # it grows with every call


def test_directions_are_numbers_of_the_type(tmp_path: Path) -> None:
    """Eleven bits would not fit into bfloat16; J v would then be that of another v."""
    along = judged(tmp_path, "bfloat16", 1.0, "jvp")
    assert along.word != "wrong", along.sentence
    assert along.ulp is not None
    assert along.ulp.worst <= 1


def test_inputs_are_rounded_and_refused_where_that_makes_another_point() -> None:
    def at(x: float, dtype: str, **more: Any) -> float:
        case = Case(f=lambda xp, x: x, inputs=lambda _n, _rng: {"x": x}, wrt=("x",), sizes=(1,), **more)
        return float(point(case, 1, 0, dtype=dtype).args[0])

    assert at(0.7, "float32") == float(np.float32(0.7))
    assert at(1e300, "float64") == 1e300
    assert at(0.7, "bfloat16") == 179 / 256
    assert np.isinf(at(np.inf, "float16"))
    assert np.isnan(at(np.nan, "float16"))
    for x, dtype in ((1e300, "float32"), (70_000.0, "float16"), (1e-200, "bfloat16")):
        with pytest.raises(Unsupported, match=f"{dtype} has no input"):
            at(x, dtype)
    declared = {"gradient": lambda x: (1.0,), "declared": True}
    assert at(0.5, "float16", **declared) == 0.5
    with pytest.raises(Unsupported, match="declared at inputs that are no numbers of float16"):
        at(0.7, "float16", **declared)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"dtype": "int8"}, "--dtype 'int8' is unknown; use float64, float32, bfloat16, float16"),
        ({"dtype": "float16", "backends": ["tape", "autograd"]}, "no selected backend computes in float16; use jax"),
    ],
)
def test_a_type_that_is_unknown_or_that_nobody_has_is_refused_in_one_line(asked: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match="^" + told) as refused:
        plan(catalog(), Request(cases=["softplus"], time=False, **asked))
    assert "\n" not in str(refused.value)


def test_a_backend_without_the_type_says_which_it_has() -> None:
    sources = catalog().backends
    assert sources["autograd"].refuses("cpu", "float16") == (
        "autograd does not compute in float16; it has float64 and float32"
    )
    why = "tape does not compute in float32; it has float64: its scalars are Python's floats"
    assert sources["tape"].refuses("cpu", "float32").startswith(why)
    assert sources["torch"].refuses("cpu", "bfloat16") == sources["tape"].refuses("cpu") == ""
    session = prepare(cases=["log_sum_exp"], backends=["torch"], time=False, dtype="bfloat16")
    assert session.result().dtype == "bfloat16"
    assert runs.run().dtype == "float64"
    assert not any(job.operator == "relations" for job in session.plan.jobs)
    session = prepare(cases=["log_sum_exp"], backends=["torch"], time=False, dtype="float32", operators=["relations"])
    assert [job.operator for job in session.plan.jobs] == ["relations"]


def test_a_backends_file_must_be_able_to_use_its_types(tmp_path: Path) -> None:
    from adbench.execution.operators import on_device

    write(tmp_path, forgets='"""x"""\nDTYPES = ("float32",)\n\ndef prepare(*_): ...\n')
    write(tmp_path, unknown='"""x"""\nDTYPES = ("int8",)\n')
    with pytest.raises(BadFile, match="use_dtype is missing"):
        on_device.loaded(catalog(backend_paths=[tmp_path / "forgets.py"]).backends["forgets"], "cpu", "outside")
    with pytest.raises(BadFile, match="DTYPES must be a tuple of types"):
        catalog(backend_paths=[tmp_path / "unknown.py"])


def test_runs_in_other_types_are_those_of_other_machines() -> None:
    plain = runs.run([runs.record()])
    low = replace(plain, settings=plain.settings | {"dtype": "bfloat16"})
    assert differences(machine_of(plain), machine_of(low)) == ["dtype: float64 → bfloat16"]
    assert machine_of(plain) == machine_of(replace(plain, settings=plain.settings | {"dtype": "float64"}))


def test_numbers_of_a_type_keep_their_nan_and_their_sign() -> None:
    rounded = PRECISIONS["float16"].rounded(np.array([np.nan, -0.0, 65_520.0, 65_519.0, -1e6, 2.0**-26]))
    np.testing.assert_array_equal(rounded, [np.nan, 0.0, np.inf, 65_504.0, -np.inf, 0.0])
    assert np.signbit(rounded[1])


@pytest.mark.slow
def test_libraries_compute_in_the_type() -> None:
    backends = ["torch", "jax", "autograd"]
    asked = prepare(
        cases=["log_sum_exp"], backends=backends, sizes=["10"], operators=["gradient", "hvp"], time=False,
        dtype="bfloat16",
    )  # fmt: skip
    list(asked.events())
    run = asked.result()
    for record in run.records:
        if record.job.backend == "autograd":
            assert record.reason == "autograd does not compute in bfloat16; it has float64 and float32"
        else:
            assert record.outcome.word in ("right", "verified", "blind"), record.reason
            assert record.verdict.ulp.worst > 1e-3  # float64 or float32 would have no such error
