"""What KNOWN says about the traps goes into the run, in parts, and stays there when the run is resumed."""

import json
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from adbench import Case
from adbench.catalog.discovery import catalog
from adbench.execution.known_bugs import described, of_no_backend, read
from adbench.execution.session import prepare, resume
from adbench.model.backend import KnownBug, Trap
from adbench.model.events import Checked, KnownBugsRead
from adbench.model.record import Run
from adbench.model.run_progress import Head, Progress, apply, assemble
from adbench.model.serialization import from_plain, to_plain
from adbench.results.journal import event_of, line_of
from adbench.results.journal import read as read_journal
from adbench.results.store import dumps, from_data
from tests.reports import runs
from tests.support.files import CASE, RIGHT, write

CASES = catalog().cases
MINE = RIGHT + (
    "\nKNOWN = {'trap_masked_sinc': 'nan', 'softplus': 'no trap: and not listed', "
    "'trap_norm_at_zero hvp h*': '2: twice (as me/mine#7)', 'trap_relu_difference': 'raises'}\n"
)
BUGS = (
    KnownBug("trap_masked_sinc", (), "nan", "0/0 in the branch not taken", "as jax-ml/jax#1722"),
    KnownBug("trap_norm_at_zero", ("hvp", "h*"), "2", "twice", "as me/mine#7"),
    KnownBug("trap_relu_difference", (), "raises", "", "as jax-ml/jax#37821"),
)


@pytest.mark.slow
def test_a_run_holds_what_the_files_of_its_backends_say_also_when_it_is_resumed(tmp_path: Path) -> None:
    write(tmp_path, softplus=CASE, hand=MINE, other=RIGHT)
    files = [str(tmp_path / f"{name}.py") for name in ("hand", "other")]
    asked = {"cases": [str(tmp_path / "softplus.py")], "sizes": ["1"], "operators": ["gradient"]}
    with closing(prepare(**asked, backends=files, time=False).events(tmp_path / "out")) as events:
        first = next(event.record.job.backend for event in events if isinstance(event, Checked))
    kept = read_journal(tmp_path / "out" / "journal.jsonl").head.run.known_bugs
    assert kept.backends == {first: BUGS if first == "hand" else ()}
    again = resume(tmp_path / "out")
    list(again.events())
    known = again.result().known_bugs
    assert known.backends == {"hand": BUGS, "other": ()}
    assert set(known.traps) == {bug.trap for bug in BUGS}
    assert known.traps["trap_masked_sinc"] == Trap("branches", "where(x = 0, 1, sin x / x) at 0", "0")
    assert known.traps["trap_norm_at_zero"] == Trap("kinks", "sqrt(Σ x²) at 0", "anything in [-1, 1] in each entry")
    assert sum(known.families.values()) == sum(case.is_trap for case in CASES.values())
    assert known.families["kinks"] == sum(case.tags[1:] == ("kinks",) for case in CASES.values())


def test_a_backend_that_cannot_be_loaded_says_nothing(tmp_path: Path) -> None:
    write(tmp_path, absent=MINE + "\nREQUIRES = ('no_such_distribution',)\n")
    made = prepare(cases=["hypot"], backends=[str(tmp_path / "absent.py")], operators=["gradient"], time=False)
    list(made.events())
    assert made.result().known_bugs.backends == {}


def test_a_line_of_the_journal_and_a_run_in_json_are_read_back(tmp_path: Path) -> None:
    event = read("hand", {"trap_x_sqrt_x h*": "nan"}, CASES)
    assert event_of(json.loads(json.dumps(line_of(event)))) == event
    progress = Progress(Head(runs.run(), ()))
    apply(event, progress)
    run = assemble(progress)
    assert run.known_bugs.backends["hand"] == event.bugs
    assert from_data(json.loads(dumps(run)), tmp_path) == run
    older = to_plain(run)
    del older["known_bugs"]
    assert from_plain(older, Run).known_bugs.backends == {}


def test_a_trap_of_the_users_own_counts_in_the_family_of_its_file() -> None:
    case = Case(
        f=lambda xp, x: x,
        inputs=lambda n, rng: {"x": 1.0, "y": 2.0},
        wrt=("x", "y"),
        sizes=(1,),
        tags=("trap",),
        gradient=lambda x, y: (x, np.full((2, 9), y)),
        summary="x at 1.",
        name="mine",
        file="/somewhere/trap_of_mine.py",
    )
    assert described(case) == Trap("of_mine", "x at 1", "1 and (2, 2, 2, …) of shape 2×9")
    known = of_no_backend({"mine": case}, ["mine"])
    assert known.families == {"of_mine": 1}
    assert read("lib", {"mine": "0"}, {"mine": case}) == KnownBugsRead(
        "lib", (KnownBug("mine", (), "0", "", ""),), {"mine": described(case)}
    )


def test_a_gradient_that_raises_leaves_the_words_of_the_summary() -> None:
    case = Case(
        f=lambda xp, x: x,
        inputs=lambda n, rng: {"x": 1.0},
        wrt=("x",),
        sizes=(1,),
        gradient=lambda x: 1 // 0,
        summary="x at 1 → 1: the identity.",
        file="trap_of_mine.py",
    )
    assert described(case).expected == "1: the identity"


@pytest.mark.parametrize(("operator", "concerned"), [("gradient", False), ("hvp", True), ("hessian", True)])
def test_a_bug_of_some_operators_concerns_those_alone(operator: str, concerned: bool) -> None:
    assert BUGS[1].concerns(operator) is concerned
    assert BUGS[0].concerns(operator)
