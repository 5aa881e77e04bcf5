"""The cache of compiled programs: the next check loads them, and damaged files are replaced."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from adbench.model.settings import PROGRAMS_VARIABLE, Settings, kept_programs, programs_folder

CHECK = "import adbench; print(adbench.check_cell('normal_log_density', 10, {backend!r}, 'gradient'))"


def checked(backend: str, folder: Path) -> str:
    """The verdict of a new process that may store programs in the folder."""
    environment = {**os.environ, PROGRAMS_VARIABLE: str(folder)}
    command = [sys.executable, "-c", CHECK.format(backend=backend)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def contents(folder: Path) -> dict[Path, bytes]:
    """The stored programs, without the times of their last use."""
    return {
        path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and not path.name.endswith("-atime")
    }


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "library"), [("jax", "jax"), ("tape_compiled", "tape")])
def test_a_damaged_program_is_compiled_again(backend: str, library: str, tmp_path: Path) -> None:
    pytest.importorskip("jax" if backend == "jax" else "llvmlite")
    verdict = checked(backend, tmp_path)
    assert "wrong" not in verdict
    kept = contents(tmp_path / library)
    assert kept
    for damage in (
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: bytes(255 - byte if k > 60 and k % 97 == 0 else byte for k, byte in enumerate(data)),
    ):
        for path, data in kept.items():
            path.write_bytes(damage(data))
        assert checked(backend, tmp_path) == verdict


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "library"), [("jax", "jax"), ("tape_compiled", "tape")])
def test_a_second_check_compiles_nothing_new(backend: str, library: str, tmp_path: Path) -> None:
    pytest.importorskip("jax" if backend == "jax" else "llvmlite")
    first = checked(backend, tmp_path)
    kept = contents(tmp_path / library)
    assert checked(backend, tmp_path) == first
    assert contents(tmp_path / library) == kept


def test_no_programs_are_stored_without_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PROGRAMS_VARIABLE, raising=False)
    assert kept_programs("jax") is None


def test_only_the_user_can_access_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(PROGRAMS_VARIABLE, str(tmp_path))
    folder = kept_programs("jax")
    assert folder == tmp_path / "jax"
    assert stat.S_IMODE(folder.stat().st_mode) & 0o022 == 0
    folder.chmod(0o777)
    assert kept_programs("jax") is None
    folder.rmdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    folder.symlink_to(elsewhere)
    assert kept_programs("jax") is None


def test_programs_are_stored_next_to_the_references(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ADBENCH_CACHE", str(tmp_path))
    assert programs_folder().parent == tmp_path / "programs"
    assert Settings().cache is None
