"""The values of `--at` and `--arg`: numbers, JSON, arrays in files, and one line for each fault."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adbench.catalog import argument_values
from adbench.catalog.argument_values import absolute, files_digest, named, positional
from adbench.model.errors import UsageError

Texts = tuple[str, ...]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    np.savez(tmp_path / "a.npz", x=np.arange(3, dtype=np.float32), n=3, i=np.array([2, 0]), s=np.float64(0.5))
    np.savez(tmp_path / "objects.npz", x=np.array([{}], dtype=object))
    np.savez(tmp_path / "complex.npz", z=np.array([1j]))
    np.save(tmp_path / "texts.npy", np.array(["a"]))
    np.save(tmp_path / "m.npy", np.eye(2))
    (tmp_path / "torn.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:100])
    (tmp_path / "o.json").write_text('{"w": [1, 2],\n "b": 0.5}')
    (tmp_path / "bad.json").write_text('{"w": [1, 2],\n "b" 0.5}')
    (tmp_path / "words.txt").write_text("1 2")
    (tmp_path / "no_values.py").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def same(found: Any, wanted: Any) -> bool:
    """Equal with types and, of arrays, the kind of numbers."""
    if type(found) is not type(wanted):
        return False
    if isinstance(found, np.ndarray):
        return found.dtype == wanted.dtype and np.array_equal(found, wanted)
    if isinstance(found, dict):
        return found.keys() == wanted.keys() and all(same(found[key], wanted[key]) for key in found)
    if isinstance(found, list):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    return bool(found == wanted)


VALUES: list[tuple[Texts, list[Any]]] = [
    (("1", "-2.5", "1e3"), [1.0, -2.5, 1000.0]),
    (("1.0 2", "3,4"), [1.0, 2.0, 3.0, 4.0]),
    (("1+2j", "-0.5j 3", "@complex.npz:z"), [1 + 2j, -0.5j, 3.0, np.array([1j])]),
    (("[[1, 2], [3, 4]]",), [np.array([[1.0, 2.0], [3.0, 4.0]])]),
    (('{"w": [1, 2], "b": 1, "deep": {"on": true, "how": "fast"}}', "2"),
     [{"w": np.array([1.0, 2.0]), "b": 1.0, "deep": {"on": True, "how": "fast"}}, 2.0]),
    (("[[1, 2], [3]]",), [[np.array([1.0, 2.0]), np.array([3.0])]]),
    (("[]",), [np.zeros(0)]),
    (('"a text"', "true", "null"), ["a text", True, None]),
    (("@a.npz:x", "@m.npy", "@a.npz:n"), [np.array([0.0, 1.0, 2.0]), np.eye(2), 3]),
    (("@o.json", "@o.json:b"), [{"w": np.array([1.0, 2.0]), "b": 0.5}, 0.5]),
]  # fmt: skip


@pytest.mark.parametrize(("texts", "wanted"), VALUES)
def test_values_in_order(folder: Path, texts: Texts, wanted: list[Any]) -> None:
    found, by_name = positional(texts)
    assert same(found, wanted), found
    assert not by_name


def test_the_arrays_of_a_file_are_arguments_by_name(folder: Path) -> None:
    found, by_name = positional(["1.5", "@a.npz"])
    assert found == [1.5]
    assert same(by_name, {"x": np.array([0.0, 1.0, 2.0]), "n": 3, "i": np.array([2, 0]), "s": 0.5})


def test_keyword_arguments_keep_whole_numbers_and_texts(folder: Path) -> None:
    found = named(
        [
            "n=3",
            "m=-3",
            "s=3.0",
            "mode=fast",
            "z=1j",
            "kind=j",
            "x=[1, 2]",
            "i=@a.npz:i",
            "on=true",
            'o={"n": 1}',
            "equal=a=b",
        ]
    )
    wanted = {"n": 3, "m": -3, "s": 3.0, "mode": "fast", "x": np.array([1.0, 2.0]), "i": np.array([2, 0]), "on": True}
    assert same(found, {**wanted, "o": {"n": 1}, "equal": "a=b", "z": 1j, "kind": "j"})


FAULTS: list[tuple[Texts, str]] = [
    (("x",), "--at: 'x' is not a number. Pass scalars"),
    (("",), "--at: '' is not a number"),
    (("[1, 2",), r"--at is not JSON: Expecting ',' delimiter after '\[1, 2', where it ends"),
    (("[1,,2]",), r"--at is not JSON: Expecting value at ',2\]' \(line 1, column 4\)"),
    (("@bad.json",), r"bad.json is not JSON: Expecting ':' delimiter at '0.5}' \(line 2, column 6\)"),
    (("@nope.npz",), "there is no file 'nope.npz'"),
    (("@b.npz",), "there is no file 'b.npz'; did you mean 'a.npz'?"),
    (("@no_values.npz",), "there is no file 'no_values.npz'$"),  # not no_values.py
    (("@a.npz:y",), "no entry of a.npz 'y'"),
    (("@o.json:y",), "no entry of o.json 'y'"),
    (("@objects.npz",), "@objects.npz holds no array of numbers, and adbench never loads pickled objects"),
    (("@texts.npy",), "@texts.npy holds <U1; save numbers"),
    (("@torn.npz",), "@torn.npz cannot be read|holds no array of numbers"),
    (("@words.txt",), "'words.txt' is not a .json, .npy or .npz file"),
]


@pytest.mark.parametrize(("texts", "message"), FAULTS)
def test_a_fault_is_one_line_that_says_where(folder: Path, texts: Texts, message: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        positional(texts)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("3",), "not of the form name=VALUE"),
        (("n=1", "n=2"), "gives 'n' twice"),
        (("x=[1",), "--arg x is not JSON"),
        (("x=@nope.npy",), "--arg x: there is no file"),
    ],
)
def test_a_fault_in_a_keyword_argument_names_it(folder: Path, texts: Texts, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        named(texts)


def test_paths_are_told_from_the_root_and_their_contents_have_a_digest(folder: Path) -> None:
    assert absolute("@a.npz:x") == f"@{folder}/a.npz:x"
    assert absolute("x=@a.npz") == f"x=@{folder}/a.npz"
    assert absolute("a@b.org") == "a@b.org"
    assert absolute("[1, 2]") == "[1, 2]"
    before = files_digest(["1.0", "x=@o.json"])
    assert before == files_digest(["@o.json", "2.0"])
    (folder / "o.json").write_text("[1]")
    assert files_digest(["@o.json"]) != before
    assert argument_values.files_digest(["1.0"]) == "none"
