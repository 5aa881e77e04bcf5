"""`adbench atlas` as a user calls it: bad requests, and (slow) real environments of made-up wheels."""

import json
from pathlib import Path

import pytest

from adbench.atlas import plan_request
from adbench.atlas.table import Atlas, ReleaseRow, read, text_of
from adbench.bisection import interpreters, releases
from adbench.bisection.interpreters import RUNNING, Interpreter
from adbench.bisection.releases import Release
from adbench.model.errors import UsageError
from tests.bisection.fake_library import BACKEND, WRONG, source, wheel
from tests.support.command import adbench, adbench_in_a_process
from tests.support.files import CASE, write

CELL = ("-b", "fake.py", "-c", "softplus.py", "--table", "fakead.json")
NEW = Interpreter(Path("/python3.13"), "3.13.0")
EVERY = tuple((Release(name, f"fakead=={name}"), (RUNNING,)) for name in ("1.0", "1.1", "1.10", "2.0"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Wrong from 1.1 to before 1.4; 1.2 cannot be installed, 1.5 not imported."""
    write(tmp_path, softplus=CASE, fake=BACKEND)
    texts = {"1.0": source(), "1.1": source(WRONG), "1.3": source(WRONG), "1.4": source(), "1.5": "import old_numpy\n"}
    for version, text in texts.items():
        wheel(tmp_path / "dist", version, text)
    wheel(tmp_path / "dist", "1.2", requires="numpy<1.0")
    (tmp_path / "other.json").write_text(text_of(Atlas("fakead", "fake", "", (ReleaseRow("0.9"),), ())))
    return tmp_path


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fakead", "--wheels", "dist"), "no backend belongs to fakead; give one with -b"),
        (("fakead", "--wheels", "nowhere", *CELL), "nowhere: has no wheel of fakead"),
        (("fakead", "--wheels", "dist", *CELL, "--releases", "3:"), "--releases 3:: no release lies there; the oldest"),
        (("fakead", "--wheels", "dist", *CELL, "--releases", "new:"), "'new' is not a version"),
        (("fakead", "--wheels", "dist", *CELL, "--full", "0"), "--full"),
        (("fakead", "--wheels", "dist", *CELL, "--keep", "much"), "--keep: 'much'"),
        (("fakead", "--wheels", "dist", *CELL, "-c", "nothing"), "no case 'nothing'"),
        (("fakead", "--wheels", "dist", *CELL[:-1], "no/folder.json"), "no/folder.json: cannot be written"),
        (
            ("fakead", "--wheels", "dist", *CELL[:-1], "other.json", "--releases", "1.0:1.1"),
            "the table has fake with 0.9; for fake with 1.0, 1.1 give another --table",
        ),
        (("fakead", "--show"), "no atlas 'fakead'"),
        (("fakead", "--show", "--table", "no.json"), "no.json: cannot be read"),
        (("fakead", "--show", "--table", "fake.py"), "fake.py: is not a table of adbench atlas"),
    ],
)
def test_an_impossible_request_is_one_line(folder: Path, words: tuple[str, ...], said: str) -> None:
    done = adbench(folder, "atlas", *words)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done.err
    assert said in done.err


def test_a_range_a_list_and_the_newest_releases() -> None:
    def names(span: str | None) -> list[str]:
        return [release.name for release, _ in plan_request.within(EVERY, span)]

    assert names("1.1:1.10") == ["1.1", "1.10"]
    assert names(":1.5") == ["1.0", "1.1"]
    assert names("1.5:") == ["1.10", "2.0"]
    assert names(None) == ["1.0", "1.1", "1.10", "2.0"]
    assert names("2.0,1.7") == ["1.7", "2.0"]
    assert {one.name: pythons for one, pythons in plan_request.within(EVERY, "2.0,1.7")} == {
        "1.7": (),
        "2.0": (RUNNING,),
    }
    with pytest.raises(UsageError, match=r"the oldest is 1\.0, the newest 2\.0"):
        plan_request.within(EVERY, "3:")


def test_a_release_has_the_pythons_that_it_supports(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = {(): ["1.0", "1.1+cpu", "1.1"], ("--python-version", "3.13", "--only-binary=:all:"): ["1.1", "1.2"]}
    monkeypatch.setattr(interpreters, "every", lambda: (RUNNING, NEW))
    monkeypatch.setattr(releases, "indexed", lambda library, *more: listed[more])
    found = {release.name: pythons for release, pythons in plan_request.of_index("fakead")}
    assert found == {"1.0": (RUNNING,), "1.1": (RUNNING, NEW), "1.2": (NEW,)}
    listed.update({key: [] for key in listed})
    with pytest.raises(UsageError, match="fakead: pip lists no releases"):
        plan_request.of_index("fakead")


def test_the_running_python_comes_first_and_others_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = {"python3.99": "CPython 3.99.1", "python3.98": "PyPy 3.98.0", "python3.9": "CPython 3.9.2"}
    for name, said in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\necho {said}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "python3.97").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python3.97").chmod(0o755)
    (tmp_path / "python3.96").touch()
    monkeypatch.setenv("PATH", f"{tmp_path}:{tmp_path}")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "none"))
    interpreters.every.cache_clear()
    try:
        assert interpreters.every() == (RUNNING, Interpreter(tmp_path / "python3.99", "3.99.1"))
    finally:
        interpreters.every.cache_clear()


@pytest.mark.slow
def test_the_atlas_of_wheels_finds_the_faulty_releases(folder: Path) -> None:
    words = ("atlas", "fakead", "--wheels", "dist", *CELL, "--installer", "pip", "--full", "3")
    first = adbench_in_a_process(folder, *words, ADBENCH_CACHE=str(folder / "cache"))
    assert first.code == 0, first.err
    found = read(folder / "fakead.json")
    reasons = {release.name: release.reason for release in found.releases}
    assert reasons["1.2"].startswith("not installed: fakead 1.2 depends on numpy<1.0; The user requested")
    assert reasons["1.5"].startswith("does not run: ")
    assert "old_numpy" in reasons["1.5"]
    (row,) = [row for row in found.traps if row.operators == ("gradient",)]
    assert row.outcomes.lower() == "rw-wr-"
    assert "1.3 → 1.4 repairs softplus" in first.out
    again = adbench_in_a_process(folder, *words, "--json", ADBENCH_CACHE=str(folder / "cache"))
    assert "traps (" not in again.err.replace("1.5: 1 traps (", "")
    assert json.loads(again.out)["ranking"] == [
        {"faults": [0, 0], "releases": ["1.4", "1.0"]},
        {"faults": [1, 0], "releases": ["1.1 to 1.3"]},
    ]
