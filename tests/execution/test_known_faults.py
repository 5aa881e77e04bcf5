"""Known faults: their files, what counts for an installed release, and what a check and a run say about them."""

import json
import subprocess
import sys
from contextlib import closing
from fnmatch import filter as matching
from itertools import chain, pairwise
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from adbench import Case
from adbench.catalog.discovery import catalog
from adbench.catalog.source import Source
from adbench.cli import cli
from adbench.execution import known_faults
from adbench.execution.known_faults import FaultFile, described, file_of, of_backend, on_traps, read_file, text_of
from adbench.execution.phases.check_phase import _as_known
from adbench.execution.session import prepare, resume
from adbench.model.backend import KnownBug, KnownBugs, Trap, known_bug
from adbench.model.case import THREAD
from adbench.model.errors import BadFile
from adbench.model.operator import EVERY_OPERATOR, RELATIONS
from adbench.model.record import Job, Record, Run
from adbench.model.serialization import from_plain, to_plain
from adbench.model.settings import on_device
from adbench.results.journal import read as read_journal
from adbench.results.store import dumps, from_data
from tests.reports import runs
from tests.support.files import CASE, RIGHT, write

CATALOG = catalog()
CASES, BACKENDS = CATALOG.cases, CATALOG.backends
FILES = sorted(file_of("jax").parent.glob("*.toml"))
OPERATORS = (*EVERY_OPERATOR, RELATIONS)
MINE = RIGHT + (
    "\nKNOWN = {'trap_masked_sinc': 'nan', 'softplus': 'no trap: and not listed', "
    "'trap_norm_at_zero hvp h*': '2: twice (as me/mine#7)', 'trap_relu_difference': 'raises'}\n"
)
BUGS = (
    KnownBug("trap_masked_sinc", (), "nan", "0/0 in the branch not taken", "as jax-ml/jax#1722"),
    KnownBug("trap_norm_at_zero", ("hvp", "h*"), "2", "twice", "as me/mine#7"),
    KnownBug("trap_relu_difference", (), "raises", "", "as jax-ml/jax#37821"),
)


def problems(file: FaultFile) -> list[str]:
    """What is wrong with a file that can be read."""
    found = []
    for fault in file.faults:
        if fault.trap not in CASES:
            found.append(f"there is no trap {fault.trap}")
        elif len(CASES[fault.trap].known_fault(fault.got).partition(": ")[2] or fault.reason) <= 10:
            found.append(f"{fault.trap} has no reason")
        found += [f"no operator is {glob}" for glob in fault.operators if not matching(OPERATORS, glob)]
        found += [f"{name} does not use {file.library}" for name in fault.backends if not uses(name, file.library)]
        if fault.thread and not THREAD.fullmatch(fault.thread.removeprefix("as ")):
            found.append(f"{fault.thread} is no thread")
        of = [BACKENDS[name].devices for name in fault.backends or file.backends if name in BACKENDS]
        if fault.device not in ("", "cpu", *chain.from_iterable(of)):
            found.append(f"no backend has the device {fault.device}")
        if fault.since and fault.repaired and fault.since >= fault.repaired:
            found.append(f"{fault.trap} is repaired before it is there")
    found += [f"{a.trap} comes after {b.trap}" for a, b in pairwise(file.faults) if a.place > b.place]
    found += [f"{a.trap} is there twice" for a, b in pairwise(file.faults) if a.place == b.place]
    return found + [f"{name} does not use {file.library}" for name in file.backends if not uses(name, file.library)]


def uses(name: str, library: str) -> bool:
    """Whether a backend reads the file of a library."""
    return name in BACKENDS and library in (*BACKENDS[name].requires, BACKENDS[name].variant_of or name)


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_file_is_sorted_and_names_traps_operators_and_backends_that_exist(path: Path) -> None:
    file = read_file(path)
    assert file.library == path.stem
    assert problems(file) == []
    assert text_of(file) == path.read_text("utf-8")


def test_the_rules_for_files_refuse_what_they_should() -> None:
    faults = [
        {"trap": "trap_x_sqrt_x", "got": "nan", "since": "2", "repaired": "1", "thread": "a thread"},
        {"trap": "trap_gone", "got": "nan", "operators": ["hvpp"], "backends": ["tape"]},
        {"trap": "trap_gone", "got": "0", "operators": ["hvpp"], "backends": ["tape"]},
        {"trap": "solve", "got": "wrong", "device": "gpu"},
    ]
    plain = {"library": "jax", "backends": ["jax"], "fault": faults}
    assert problems(msgspec.convert(plain, FaultFile, dec_hook=lambda kind, text: kind(text))) == [
        "a thread is no thread",
        "trap_x_sqrt_x is repaired before it is there",
        *["there is no trap trap_gone", "no operator is hvpp", "tape does not use jax"] * 2,
        "solve has no reason",
        "no backend has the device gpu",
        "trap_x_sqrt_x comes after trap_gone",
        "trap_gone comes after solve",
        "trap_gone is there twice",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("library = jax", r"jax.toml: Invalid value \(at line 1, column 11\)"),
        ('library = "jax"', "missing required field `backends`"),
        ('library = "jax"\nbackends = []\nfaults = 1', "unknown field `faults`"),
        ('library = "jax"\nbackends = []\n[[fault]]\ntrap = "a"\ngot = "0"\nthreat = "b"', r"`threat` - at `\$.fault"),
        ('library = "jax"\nbackends = []\n[[fault]]\ntrap = "a"\ngot = 0', r"Expected `str`, got `int` - at .*\.got"),
        ('library = "jax"\nbackends = []\nchecked = ["new"]', "Invalid version: 'new' - at .*checked"),
        ('library = "jax"\nbackends = []\nchecked = [1]', "checked"),
        ("\xe9", "jax.toml: "),
    ],
)
def test_a_bad_file_ends_a_check_in_one_line_before_it_begins(tmp_path: Path, text: str, said: str) -> None:
    write(tmp_path, hand=RIGHT + "\nREQUIRES = ('jax',)\n")
    path = file_of("jax", tmp_path)
    path.parent.mkdir()
    path.write_text(text, "latin-1")
    with pytest.raises(BadFile, match=said) as error:
        of_backend(catalog(backend_paths=[tmp_path / "hand.py"]).backends["hand"], CASES)
    assert "\n" not in str(error.value)
    with pytest.raises(BadFile, match=said):
        prepare(cases=["trap_x_sqrt_x"], backends=[str(tmp_path / "hand.py")], operators=["gradient"], time=False)


def test_a_command_says_in_one_line_what_is_wrong_with_a_file(tmp_path: Path) -> None:
    write(tmp_path, hand=RIGHT)
    file_of("hand", tmp_path).parent.mkdir()
    file_of("hand", tmp_path).write_text('library = "hand"\nbackends = ["hand"]\nnote = "?"\n')
    command = [sys.executable, "-m", "adbench", "check", "-c", "trap_x_sqrt_x", "-b", str(tmp_path / "hand.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines() == [f"adbench: {file_of('hand', tmp_path)}: Object contains unknown field `note`"]


FAULTS = """
library = "lib"
backends = ["mine", "other"]
checked = ["1.9", "1.10"]

[[fault]]
trap = "trap_masked_sinc"
got = "nan"
since = "1.10"

[[fault]]
trap = "trap_norm_at_zero"
backends = ["mine"]
got = "nan"
reason = "0/0"
thread = "me/mine#7"
repaired = "2.0"
"""


@pytest.mark.parametrize(
    ("installed", "known", "unchecked"),
    [
        ("1.9", ["trap_norm_at_zero"], None),
        ("1.10+cpu", ["trap_masked_sinc", "trap_norm_at_zero"], None),
        ("1.11", ["trap_masked_sinc", "trap_norm_at_zero"], "1.11"),
        ("2.0rc1", ["trap_masked_sinc", "trap_norm_at_zero"], "2.0rc1"),
        ("2.0", ["trap_masked_sinc"], "2.0"),
        ("unreadable", ["trap_masked_sinc", "trap_norm_at_zero"], None),
        (None, ["trap_masked_sinc", "trap_norm_at_zero"], None),
    ],
)
def test_a_fault_counts_in_its_releases_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: str | None, known: list[str], unchecked: str | None
) -> None:
    file_of("lib", tmp_path).parent.mkdir()
    file_of("lib", tmp_path).write_text(FAULTS)
    monkeypatch.setattr(known_faults, "installed_version", {"lib": installed}.get)
    mine, other, third = (
        of_backend(Source("backends", name, str(tmp_path / "x.py"), builtin=False, requires=("lib",)), CASES)
        for name in ("mine", "other", "third")
    )
    assert [bug.trap for bug in mine.bugs] == known
    assert [bug.trap for bug in other.bugs] == [name for name in known if name != "trap_norm_at_zero"]
    assert third.bugs == ()
    said = f"not known for lib {unchecked}; known faults were last checked with 1.10" if unchecked else ""
    assert mine.unchecked == said
    if bug := known_bug(mine.bugs, "trap_norm_at_zero", "gradient"):
        advice = "" if installed in (None, "unreadable") else "repaired in lib 2.0: upgrade; "
        assert bug.text == f"nan: {advice}0/0 (me/mine#7)"


def test_nobody_is_told_to_upgrade_to_another_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = 'library = "lib"\nbackends = ["mine"]\n'
    fault = '[[fault]]\ntrap = "trap_x_sqrt_x"\ngot = "{}"\nreason = "r"\n{} = "2.0"\n'
    file_of("lib", tmp_path).parent.mkdir()
    file_of("lib", tmp_path).write_text(head + fault.format("0", "repaired") + fault.format("nan", "since"))
    source = Source("backends", "mine", str(tmp_path / "mine.py"), builtin=False, requires=("lib",))
    for installed, told in (("1.0", "0: r"), ("2.0", "nan: r")):
        monkeypatch.setattr(known_faults, "installed_version", {"lib": installed}.get)
        assert [bug.text for bug in of_backend(source, CASES).bugs] == [told]


def test_a_fault_of_a_device_counts_on_that_device_alone(tmp_path: Path) -> None:
    head = 'library = "lib"\nbackends = ["mine"]\n'
    fault = '[[fault]]\ntrap = "{}"\ngot = "0"\nreason = "r"\n'
    text = head + fault.format("trap_cosh") + fault.format("trap_x_sqrt_x") + 'device = "cuda"\n'
    file_of("lib", tmp_path).parent.mkdir()
    file_of("lib", tmp_path).write_text(text)
    source = Source("backends", "mine", str(tmp_path / "mine.py"), builtin=False, requires=("lib",))
    assert [bug.trap for bug in of_backend(source, CASES).bugs] == ["trap_cosh"]
    bugs = of_backend(source, CASES, "cuda").bugs
    assert [bug.trap for bug in bugs] == ["trap_cosh", "trap_x_sqrt_x"]
    assert [bug.was_seen_on("cuda") for bug in bugs] == [False, True]


def test_torchs_log_determinant_is_a_known_fault_on_cuda_alone() -> None:
    case, torch = CASES["log_determinant"], BACKENDS["torch"]
    job = Job("log_determinant", 10, "torch", RELATIONS)
    record = Record(job, "wrong", "nan: in 8 operators")
    for device, status in (("cpu", "wrong"), ("cuda", "known")):
        faults = of_backend(torch, {case.name: case}, device)
        assert _as_known(record, faults, case, "float64", device).status == status


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_run_lists_the_known_faults_of_its_device(device: str) -> None:
    session = prepare(cases=["trap_repeated_scatter"], backends=["jax"], device=device, time=False)
    listed = [bug.trap for bug in session.result().known_bugs.backends[on_device("jax", device)]]
    assert ("trap_repeated_scatter" in listed) == (device == "cuda")


def checked(folder: Path, text: str, *options: str) -> tuple[int, str]:
    """The exit code, status and reason of a check of one case, with this file for the backend's library, numpy."""
    write(folder, mine=RIGHT + "\nREQUIRES = ('numpy',)\n", softplus=CASE.replace("(1, 10, 100)", "(1,)"))
    file_of("numpy", folder).parent.mkdir(exist_ok=True)
    file_of("numpy", folder).write_text(f'library = "numpy"\nbackends = ["mine"]\nchecked = ["1.0"]\n{text}')
    command = ["check", "-b", str(folder / "mine.py"), "--operator", "gradient", "--json", *options]
    done = CliRunner().invoke(cli, command, catch_exceptions=False)
    (record,) = json.loads(done.stdout)["records"]
    return done.exit_code, f"{record['status']}: {record['reason']}"


@pytest.mark.slow
def test_a_fault_that_is_gone_is_a_note_and_a_repaired_one_has_advice(tmp_path: Path) -> None:
    fault = '[[fault]]\ntrap = "{}"\ngot = "6"\nreason = "mine"\n{}\n'
    right, wrong = str(tmp_path / "softplus.py"), "trap_x_sqrt_x"
    note = (0, "surprise: right, but listed as a known fault: 6: mine")
    assert checked(tmp_path, fault.format("softplus", ""), "-c", right) == note
    assert checked(tmp_path, fault.format("softplus", ""), "-c", right, "--strict-known") == (1, note[1])
    assert checked(tmp_path, fault.format("softplus", 'since = "999"'), "-c", right) == (0, "ok: None")
    code, told = checked(tmp_path, fault.format(wrong, 'repaired = "999"'), "-c", wrong)
    assert (code, told.partition("Here: ")[0]) == (0, "known: 6: repaired in numpy 999: upgrade; mine. ")
    code, told = checked(tmp_path, fault.format(wrong, 'repaired = "0.1"'), "-c", wrong)
    assert code == 1
    assert told.endswith(f"; not known for numpy {np.__version__}; known faults were last checked with 1.0")


@pytest.mark.slow
def test_a_run_holds_what_the_files_of_its_backends_say_also_when_it_is_resumed(tmp_path: Path) -> None:
    write(tmp_path, softplus=CASE, hand=MINE, other=RIGHT)
    files = [str(tmp_path / f"{name}.py") for name in ("hand", "other")]
    asked = {"cases": [str(tmp_path / "softplus.py")], "sizes": ["1"], "operators": ["gradient"]}
    with closing(prepare(**asked, backends=files, time=False).events(tmp_path / "out")) as events:
        next(events)
    known = read_journal(tmp_path / "out" / "journal.jsonl").head.run.known_bugs
    again = resume(tmp_path / "out")
    list(again.events())
    assert again.result().known_bugs == known
    assert known.backends == {"hand": BUGS, "other": ()}
    assert set(known.traps) == {bug.trap for bug in BUGS}
    assert known.traps["trap_masked_sinc"] == Trap("branches", "where(x = 0, 1, sin x / x) at 0", "0")
    assert known.traps["trap_norm_at_zero"] == Trap("kinks", "sqrt(Σ x²) at 0", "anything in [-1, 1] in each entry")
    assert sum(known.families.values()) == sum(case.is_trap for case in CASES.values())
    assert known.families["kinks"] == sum(case.tags[1:] == ("kinks",) for case in CASES.values())


def test_a_backend_that_is_not_installed_says_nothing(tmp_path: Path) -> None:
    write(tmp_path, absent=MINE + "\nREQUIRES = ('no_such_distribution',)\n")
    made = prepare(cases=["hypot"], backends=[str(tmp_path / "absent.py")], operators=["gradient"], time=False)
    assert made.result().known_bugs.backends == {}


def test_the_known_bugs_of_a_run_in_json_are_read_back(tmp_path: Path) -> None:
    run = runs.run(known_bugs=on_traps([BACKENDS["autograd"]], CASES, ["trap_cosh"]))
    assert {"trap_cosh", "trap_x_sqrt_x"} <= set(run.known_bugs.traps)
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
    source = Source("backends", "lib", "lib.py", builtin=False, known={"mine": "0", "other": "1"})
    bugs = {"lib": (KnownBug("mine", (), "0", "", ""),)}
    assert on_traps([source], {"mine": case}, []) == KnownBugs({"of_mine": 1}, {"mine": described(case)}, bugs)


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
