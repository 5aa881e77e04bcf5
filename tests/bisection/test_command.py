"""`adbench bisect` as a user calls it: bad requests, and (slow) real environments of made-up wheels."""

import json
import os
import subprocess
from math import exp
from pathlib import Path
from statistics import median

import pytest

from adbench.bisection.environments import Environments, core_files, reason_in
from adbench.bisection.judge import CellJudge
from adbench.bisection.question import asked
from adbench.bisection.releases import Release
from adbench.model.errors import UsageError
from tests.bisection.fake_library import BACKEND, RIGHT, WRONG, source, wheel
from tests.support.command import Result, adbench, adbench_in_a_process
from tests.support.files import CASE, write

CELL = ("-b", "fake.py", "-c", "softplus.py", "-n", "10")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A case, a backend, and wheels: wrong from 1.1 on; 1.2 cannot be installed."""
    write(tmp_path, softplus=CASE, fake=BACKEND)
    for version, text in (("1.0", source()), ("1.1", source(WRONG)), ("1.4", source(WRONG))):
        wheel(tmp_path / "dist", version, text)
    wheel(tmp_path / "dist", "1.2", requires="numpy<1.0")
    return tmp_path


def bisect(folder: Path, *words: str) -> Result:
    return adbench_in_a_process(folder, "bisect", "fakead", *words, ADBENCH_CACHE=str(folder / "cache"))


def test_the_plan_lists_the_releases_in_order(folder: Path) -> None:
    wheel(folder / "dist", "1.10")
    wheel(folder / "dist", "0.9")
    (folder / "dist" / "other-1.0-py3-none-any.whl").touch()
    (folder / "dist" / "fakead-1.5-cp27-none-any.whl").touch()
    done = adbench(folder, "bisect", "fakead", "1.1", "1.10", "--wheels", "dist", *CELL, "--wrong", "--plan")
    assert (done.code, done.out.splitlines()[0]) == (0, "4 releases: 1.1, 1.2, 1.4 and 1.10")
    assert "At most 4 are installed" in done.out
    assert not (folder / "cache").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("1.0", "1.4", *CELL), "give one of --wrong and --slower"),
        (("1.0", "1.4", *CELL, "--wrong", "--slower", "20%"), "give one of --wrong and --slower"),
        (("1.0", "1.4", *CELL, "--wrong", "--first-result"), "--first-result needs --slower"),
        (("1.0", "1.4", *CELL, "--slower", "fast"), "--slower: 'fast' is not a share"),
        (("1.0", "7", *CELL, "--wrong"), "no release '7'; there are: 1.0, 1.1, 1.2, 1.4"),
        (("1.0", "1.0", *CELL, "--wrong"), "GOOD and BAD are both 1.0; give two releases"),
        (("1.0", "1.4", *CELL, "--wrong", "--versions", "1,2"), "--versions, --wheels and --commits contradict"),
        (("1.0", "1.4", *CELL, "--wrong", "--build", "true"), "--commits and --build go together"),
        (("1.0", "1.4", "-c", "softplus.py", "-n", "10", "--wrong"), "no backend belongs to fakead; give one with -b"),
        (("1.0", "1.4", "-b", "fake.py", "-c", "nothing", "-n", "10", "--wrong"), "no case 'nothing'"),
        (("1.0", "1.4", "-b", "fake.py", "-c", "softplus.py", "-n", "x", "--wrong"), "'x'"),
        (
            ("1.0", "1.4", "-b", "tape", "-c", "softplus.py", "-n", "10", "--slower", "20%"),
            "times are relative to tape",
        ),
        (
            ("1.0", "1.4", "-b", "fake.py", "-c", "hyp*", "-c", "normal_*", "-n", "1", "--wrong"),
            "one case and one backend",
        ),
    ],
)
def test_an_impossible_request_is_one_line(folder: Path, words: tuple[str, ...], said: str) -> None:
    done = adbench(folder, "bisect", "fakead", *words, "--wheels", "dist")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done.err
    assert said in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--wheels", "nowhere"), "nowhere: has no wheel of fakead for this Python"),
        (("--versions", "1.0,next"), "'next' is not a version"),
        (("--commits", "nowhere", "--build", "true"), "nowhere: is no directory"),
        (("--commits", "dist", "--build", "true"), "dist: is not a git checkout"),
    ],
)
def test_a_source_without_releases_is_one_line(folder: Path, words: tuple[str, ...], said: str) -> None:
    done = adbench(folder, "bisect", "fakead", "1.0", "1.4", *CELL, "--wrong", *words)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done.err
    assert said in done.err


def test_the_reason_of_a_failed_installation_is_one_line() -> None:
    conflict = (
        "ERROR: Cannot install fakead==1.2 because these package versions have conflicting dependencies.\n\n"
        "The conflict is caused by:\n    fakead 1.2 depends on numpy<1.0\n    The user requested numpy>=2.0\n\n"
        "To fix this you could try to:\n1. loosen\n\nERROR: ResolutionImpossible: for help visit https://pip\n"
    )
    assert reason_in("", conflict) == "fakead 1.2 depends on numpy<1.0; The user requested numpy>=2.0"
    missing = "ERROR: Could not find a version that satisfies x==9\nERROR: No matching distribution found for x==9\n"
    assert reason_in("", missing) == "No matching distribution found for x==9"
    uv = (
        "  × No solution found when resolving dependencies:\n  ╰─▶ Because there is no version of x==9\n      and you\n"
    )
    assert reason_in("", uv) == "Because there is no version of x==9 and you"
    uv = "error: No solution found when resolving dependencies\n  cause: Because there is no version of x==9\n"
    assert reason_in("", uv) == "Because there is no version of x==9"
    assert reason_in("", "Traceback:\n  x\nValueError: no\n") == "ValueError: no"
    assert len(reason_in("", "error: " + "x" * 1000)) == 240


def test_environments_used_longest_ago_are_deleted_beyond_the_limit(tmp_path: Path) -> None:
    environments, releases = Environments(tmp_path, "pip", most_bytes=250), [Release(v, f"x=={v}") for v in "1234"]
    places = [environments._place(release) for release in releases]
    for age, place in enumerate(places):
        place.mkdir()
        (place / "adbench.json").write_text('{"bytes": 100}')
        os.utime(place / "adbench.json", (1e9 - age, 1e9 - age))
    environments.trim(spare=[releases[3]])
    assert [place.is_dir() for place in places] == [True, True, False, True]
    assert len({place.name for place in places}) == 4


def test_one_bisection_at_a_time(tmp_path: Path) -> None:
    environments = Environments(tmp_path, "pip")
    with environments.locked(), pytest.raises(UsageError, match="another bisection uses"), environments.locked():
        pass


def test_each_environment_has_what_adbench_requires() -> None:
    found = core_files()
    assert {"adbench", "numpy", "flint", "msgspec", "click"} <= found.keys()
    assert all(path.exists() for path in found.values())
    assert not {"jax", "torch", "pip", "autograd"} & found.keys()


@pytest.mark.slow
def test_it_finds_the_wrong_release_among_wheels_and_reuses_environments(folder: Path) -> None:
    words = ("1.0", "1.4", "--wheels", "dist", *CELL, "--operator", "gradient", "--wrong")
    first = bisect(folder, *words)
    assert first.code == 0, first.err
    assert "First bad release: 1.1: gradient: 10 of 10 wrong" in first.out
    assert "1.2      —            not installed  fakead 1.2 depends on numpy<1.0" in first.out
    again = bisect(folder, *words, "--json")
    data = json.loads(again.out)
    assert [each["name"] for each in data["culprits"]] == ["1.1"]
    assert data["installed"] <= data["most_installed"] == 4
    assert {each["environment"] for each in data["trials"]} == {"reused", None}


@pytest.mark.slow
def test_times_are_relative_to_the_tape_in_the_environment_of_each_release(folder: Path) -> None:
    """The search itself is tested without processes, in test_search.py."""
    wheel(folder / "dist", "2.0", source(RIGHT, 300))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ADBENCH_CACHE", str(folder / "cache"))
        patch.chdir(folder)
        question, environments = asked(
            "fakead", "1.0", "2.0", case="softplus.py", size="10", backend="fake.py", slower=0.2, wheels=Path("dist")
        )
        judge, logs = CellJudge(question.request, question.backend), []
        with environments.locked():
            for release in (question.releases[0], question.releases[-1]):
                python, existed = environments.python(release)
                assert not existed
                logs.append(judge.launches(python, 2))
    assert [len(found) for found in logs] == [2, 2]
    assert 1.5 < exp(median(logs[1]) - median(logs[0])) < 6


@pytest.mark.slow
def test_it_finds_the_wrong_commit_of_a_checkout(folder: Path) -> None:
    checkout = folder / "checkout"
    checkout.mkdir()

    def git(*words: str) -> None:
        about = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", "-C", str(checkout), *about, *words], check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    for k, text in enumerate((source(), "broken", source(WRONG))):
        (checkout / "fakead.py").write_text(text)
        (checkout / "build.sh").write_text(
            "echo no compiler >&2; exit 3" if text == "broken" else 'test "$VIRTUAL_ENV"'
        )
        git("add", ".")
        git("commit", "-qm", f"Change {k}")
    write(folder, fake=BACKEND.replace('REQUIRES = ("fakead",)\n', ""))
    words = ("--commits", "checkout", "--build", "sh build.sh", *CELL, "--operator", "gradient", "--wrong")
    done = bisect(folder, "main~2", "main", *words)
    assert done.code == 5, done.err
    assert "First bad commit: one of" in done.out
    assert "not installed  no compiler" in done.out
