"""`adbench bisect` as a user calls it: bad requests, and (slow) real environments of made-up wheels."""

import json
import subprocess
from pathlib import Path

import pytest

from adbench.bisection.environments import core_files, reason_in
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
    assert reason_in("", "Traceback:\n  x\nValueError: no\n") == "ValueError: no"
    assert len(reason_in("", "error: " + "x" * 1000)) == 240


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
    again = bisect(folder, *words, "--json", "--keep", "1K")
    data = json.loads(again.out)
    assert [each["name"] for each in data["culprits"]] == ["1.1"]
    assert data["installed"] <= data["most_installed"] == 4
    assert {each["environment"] for each in data["trials"]} == {"reused", None}
    assert not list((folder / "cache" / "bisections").glob("*/adbench.json"))


@pytest.mark.slow
def test_it_finds_the_slower_release_among_wheels(folder: Path) -> None:
    for version, repeats in (("2.0", 100), ("2.1", 300), ("2.2", 300)):
        wheel(folder / "dist", version, source(RIGHT, repeats))
    done = bisect(folder, "2.0", "2.2", "--wheels", "dist", *CELL, "--slower", "20%", "--json")
    assert done.code == 0, done.err
    data = json.loads(done.out)
    assert [each["name"] for each in data["culprits"]] == ["2.1"]
    assert 2 < data["slowdown"] < 4.5


@pytest.mark.slow
def test_it_finds_the_wrong_commit_of_a_checkout(folder: Path) -> None:
    checkout = folder / "checkout"
    checkout.mkdir()

    def git(*words: str) -> None:
        about = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", "-C", str(checkout), *about, *words], check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    for k, text in enumerate((source(), source(repeats=90), "broken", source(WRONG), source(WRONG, 90))):
        (checkout / "fakead.py").write_text(text)
        (checkout / "build.sh").write_text("exit 3" if text == "broken" else 'test -n "$VIRTUAL_ENV"')
        git("add", ".")
        git("commit", "-qm", f"Change {k}")
        git("tag", f"v{k}")
    write(folder, fake=BACKEND.replace('REQUIRES = ("fakead",)\n', ""))
    words = ("--commits", "checkout", "--build", "sh build.sh", *CELL, "--operator", "gradient", "--wrong")
    done = bisect(folder, "v0", "main", *words)
    assert done.code == 5, done.err
    assert "First bad commit: one of" in done.out
    fixed = bisect(folder, "v0", "v1", *words)
    assert (fixed.code, fixed.err.count("is not bad")) == (2, 1), fixed.err
