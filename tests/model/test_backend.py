"""A backend's file in the harness: its parts, and its own implementations."""

from pathlib import Path

import numpy as np
import pytest

from adbench import Unsupported
from adbench.catalog.discovery import catalog, load
from adbench.execution.operators.relations import Setting
from adbench.execution.session import prepare
from adbench.model.backend import Backend, from_module
from adbench.model.errors import BadFile
from tests.support.files import CASE, RIGHT, write

OWN = RIGHT + "\nFUNCTIONS = {'recurrence': lambda xp, x: 2.0 * xp.sum(x)}\n"


def backend(folder: Path, text: str) -> Backend:
    return from_module("mine", load(catalog(backend_paths=[write(folder, mine=text)]).backends["mine"]))


def test_a_backends_implementation_replaces_the_cases_source(tmp_path: Path) -> None:
    used, case = backend(tmp_path, OWN), catalog().cases["recurrence"]
    names, args, _ = case.bind(5, 0)
    f = used.function(case, names)
    assert f(*args) == pytest.approx(2 * np.sum(args[0]))
    assert f.case.name == "recurrence"  # type: ignore[attr-defined]
    assert used.text == "native"
    assert backend(tmp_path / "other", RIGHT).text == "portable"


def test_a_backends_implementation_serves_cases_with_other_active_inputs(tmp_path: Path) -> None:
    used = backend(tmp_path, RIGHT + "\nFUNCTIONS = {'normal_log_density': lambda xp, y, mu, sigma: mu}\n")
    case = catalog().cases["normal_log_density_in_y"]
    names, args, _ = case.bind(5, 0)
    assert used.function(case, names)(*args) == args[1]


def test_a_backend_with_implementations_has_no_other_case(tmp_path: Path) -> None:
    used, case = backend(tmp_path, OWN), catalog().cases["matrix_product"]
    with pytest.raises(Unsupported, match="mine implements only recurrence"):
        used.function(case, case.bind(2, 0)[0])


@pytest.mark.parametrize("value", ["3", "{'a': 1}", "{1: len}"])
def test_implementations_must_be_functions(tmp_path: Path, value: str) -> None:
    with pytest.raises(BadFile, match="FUNCTIONS must be a dict: case name -> function"):
        backend(tmp_path, RIGHT + f"\nFUNCTIONS = {value}\n")


def test_a_wrong_implementation_is_found_and_its_records_name_the_owner(tmp_path: Path) -> None:
    write(tmp_path, mine=OWN)
    session = prepare(
        backends=[str(tmp_path / "mine.py")], cases=["recurrence", "matrix_product"], sizes=["2"], time=False
    )
    for _ in session.events():
        pass
    found = {(r.job.case, r.job.operator): r for r in session.result().records}
    assert found["recurrence", "gradient"].status == "wrong"
    assert found["recurrence", "gradient"].text == "native"
    relations = found["recurrence", "relations"]  # they repeat that fault, and are not wrong because of it
    assert (relations.status, relations.reason) == ("ok", None)
    assert "wrong" in relations.relations.repeats["gradient"]
    assert found["matrix_product", "gradient"].status == "unsupported"


def test_relations_that_only_repeat_a_fault_are_wrong_if_alone(tmp_path: Path) -> None:
    write(tmp_path, mine=OWN)
    session = prepare(
        backends=[str(tmp_path / "mine.py")], cases=["recurrence"], sizes=["2"], operators=["relations"], time=False
    )
    for _ in session.events():
        pass
    (record,) = session.result().records
    assert record.status == "wrong"
    assert (record.reason or "").startswith("wrong by itself (value, gradient")


@pytest.mark.slow
def test_each_relation_has_the_time_of_a_step(tmp_path: Path) -> None:
    """A slow library is prepared again for each relation, which together takes longer than one step."""
    slow = RIGHT.replace(
        "def prepare(operator, f, args, wrt):", "def prepare(operator, f, args, wrt):\n    time.sleep(1)"
    )
    write(tmp_path, mine="import time\n" + slow, case=CASE)
    session = prepare(
        backends=[str(tmp_path / "mine.py")],
        cases=[str(tmp_path / "case.py")],
        sizes=["10"],
        operators=["relations"],
        time=False,
        timeout=5.0,
    )
    for _ in session.events():
        pass
    assert [(r.status, r.reason) for r in session.result().records] == [("ok", None)]


def test_relations_use_the_backends_implementation(tmp_path: Path) -> None:
    text = OWN.replace("lambda x: (right(x),)", "lambda x: (f(x) * right(x),)")
    used, case = backend(tmp_path, text), catalog().cases["recurrence"]
    setting = Setting(used, case, 2, 0, None)  # type: ignore[arg-type]  # nothing is judged
    (x,) = native = setting.native(setting.at.args)
    gradient = setting.numpy(setting.prepare("gradient", native, setting.at.wrt)(*native))[0]
    np.testing.assert_allclose(gradient, 2 * np.sum(x) / (1 + np.exp(-x)))


def test_an_operator_that_is_not_in_a_backends_table_is_unsupported(tmp_path: Path) -> None:
    text = "def prepare(operator, f, args, wrt):\n    return {'value': f, 'gradient': {}['a']}[operator]\n"
    with pytest.raises(KeyError, match="'a'"):
        backend(tmp_path, text).prepare("value", abs, (1.0,), (0,))
    table = backend(tmp_path / "other", text.replace("{}['a']", "f"))
    assert table.prepare("value", abs, (1.0,), (0,)) is abs
    with pytest.raises(Unsupported, match="mine has no hessian"):
        table.prepare("hessian", abs, (1.0,), (0,))


def test_a_misspelt_key_in_a_backends_own_code_is_a_fault_even_if_it_is_an_operators_name(tmp_path: Path) -> None:
    text = "def prepare(operator, f, args, wrt):\n    return {'valeu': f, 'gradient': f}['value']\n"
    with pytest.raises(KeyError, match="'value'"):
        backend(tmp_path, text).prepare("value", abs, (1.0,), (0,))
