"""Machine code on disk: found again, and trusted only with a valid seal."""

import os
import time

import numpy as np
import pytest

from adbench import sealed_folder, tape
from adbench.tape.machine import llvm

X = np.linspace(0.5, 1.5, 30)


def f(x):
    return tape.sum(tape.exp(x) * x)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "code"


@pytest.fixture
def made(monkeypatch):
    """The calls of LLVM for object code, without entry points."""
    asked = []
    real = llvm.object_code

    def counting(text, level):
        if "@run(" in text:
            asked.append(level)
        return real(text, level)

    monkeypatch.setattr(llvm, "object_code", counting)
    return asked


def compiled_in(folder, **options):
    """Compile a function with this cache, and check its result."""
    call = tape.compile(f, X, cache=folder, **options)
    value, gradient = call(2.0 * X)
    assert value == pytest.approx(np.sum(np.exp(2 * X) * 2 * X), rel=1e-13)
    np.testing.assert_allclose(gradient, np.exp(2 * X) * (1 + 2 * X), rtol=1e-13)
    assert "eager" not in call.explain()


def entry_in(folder):
    (path,) = folder.glob("*.code")
    return path


def test_nothing_is_kept_unless_a_folder_is_named(folder, made, monkeypatch):
    monkeypatch.setattr(sealed_folder, "_write", lambda *_: pytest.fail("something was written"))
    tape.compile(f, X)
    assert len(made) == 1


def test_code_is_found_again_if_nothing_that_it_depends_on_changed(folder, made):
    compiled_in(folder)
    assert len(made) == 1
    compiled_in(folder)
    assert len(made) == 1
    compiled_in(folder, level=1)
    compiled_in(folder, fast_math=True)
    assert len(made) == 3
    assert len(list(folder.glob("*.code"))) == 3
    tape.compile(lambda x: tape.sum(x), X, cache=folder)
    assert len(made) == 4


def test_another_processor_gets_another_entry(folder, made, monkeypatch):
    compiled_in(folder)
    name, features = llvm.processor()
    monkeypatch.setattr(llvm, "processor", lambda: (name, features + ",-avx512pf"))
    compiled_in(folder)
    assert len(made) == 2


DAMAGES = {
    "a bit": lambda b: b[:-7] + bytes([b[-7] ^ 1]) + b[-6:],
    "the seal": lambda b: b[:25] + bytes([b[25] ^ 1]) + b[26:],
    "the head": lambda b: b"another\n" + b[8:],
    "cut off": lambda b: b[: len(b) // 2],
    "empty": lambda b: b"",
    "more": lambda b: b + b"\0",
    "nonsense": lambda b: os.urandom(len(b)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_changed_entry_is_compiled_again_and_replaced(folder, made, damage):
    compiled_in(folder)
    path = entry_in(folder)
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    compiled_in(folder)
    assert len(made) == 2
    compiled_in(folder)
    assert len(made) == 2


def test_a_renamed_entry_is_ignored(folder, made):
    tape.compile(lambda x: tape.sum(x * 3.0), X, cache=folder)
    other = entry_in(folder)
    code = other.read_bytes()
    compiled_in(folder)
    (path,) = set(folder.glob("*.code")) - {other}
    path.write_bytes(code)
    compiled_in(folder)
    assert len(made) == 3


def test_an_entry_sealed_with_another_key_is_ignored(folder, made):
    compiled_in(folder)
    (folder / "key").write_bytes(bytes(32))
    compiled_in(folder)
    assert len(made) == 2


@pytest.mark.parametrize("what", ["link", "others may write", "pipe", "too long"])
def test_only_regular_files_of_the_user_are_read(folder, made, what, monkeypatch):
    compiled_in(folder)
    path = entry_in(folder)
    if what == "link":
        path.rename(folder / "elsewhere")
        path.symlink_to(folder / "elsewhere")
    elif what == "others may write":
        path.chmod(0o666)
    elif what == "pipe":
        path.unlink()
        os.mkfifo(path)
    else:
        monkeypatch.setattr(sealed_folder, "LARGEST", 100)
    compiled_in(folder)
    assert len(made) == 2


def test_a_folder_that_others_can_write_to_is_refused_in_one_line(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    (tmp_path / "file").touch()
    for bad in (shared, link, tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ValueError, match="compile: cache: ") as told:
            tape.compile(f, X, cache=bad)
        assert "\n" not in str(told.value)


def test_only_the_user_can_read_key_and_entries(folder):
    compiled_in(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    for path in folder.iterdir():
        assert path.stat().st_mode & 0o077 == 0
    assert not [p for p in folder.iterdir() if p.suffix != ".code" and p.name != "key"]  # no partial files


def test_a_read_only_folder_caches_nothing_and_raises_nothing(folder, made, monkeypatch):
    def full(*_args, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sealed_folder, "_write", full)
    compiled_in(folder)
    compiled_in(folder)
    assert len(made) == 2


def test_the_oldest_entries_go_when_there_are_too_many(tmp_path):
    cache = sealed_folder.SealedFolder(tmp_path / "code", limit=1000)
    names = [f"{k}.code" for k in range(4)]
    for k, name in enumerate(names):
        cache.put(name, bytes(300))
        if (cache.folder / name).exists():
            os.utime(cache.folder / name, (time.time() - 100 + k,) * 2)
    assert [cache.get(name) is None for name in names] == [True, True, False, False]


def test_many_small_entries_cost_few_looks_at_the_folder(tmp_path, monkeypatch):
    looks, glob = [], type(tmp_path).glob
    monkeypatch.setattr(type(tmp_path), "glob", lambda folder, *rest: looks.append(folder) or glob(folder, *rest))
    cache = sealed_folder.SealedFolder(tmp_path / "code", limit=640_000)
    for k in range(500):
        cache.put(f"{k}.code", bytes(1_000))
    assert 40 <= len(looks) <= 60
    sealed_folder.SealedFolder(tmp_path / "code", limit=640_000).put("last.code", bytes(1_000))
    assert len(looks) <= 60, "another object for the same folder looked again"


def test_a_program_in_pieces_is_cached_piece_by_piece(folder, made, monkeypatch):
    monkeypatch.setattr("adbench.tape.compiled.lowering.module.PIECES", (40,) * 4)

    def long(x):
        s = x
        for _ in range(30):
            s = s + (x * x + 1.0) / s
        return s

    expected = tape.gradient(long, 0.9)
    for _ in range(2):
        call = tape.compile(long, 0.7, cache=folder)
        assert call(0.9) == pytest.approx(expected, rel=1e-13)
    assert len(list(folder.glob("*.code"))) > 3
    assert len(made) == 1  # only of `run`; pieces are not counted here
