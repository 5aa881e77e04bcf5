"""The values of a function's arguments, from the command line: numbers, JSON, and arrays in files.

    1.0   1+2j   [[1, 2], [3, 4]]   {"w": [1, 2], "b": 0.5}   @file.json   @file.npy   @file.npz   @file.npz:key

An array of numbers becomes a float64 array. A number by itself becomes a float; where `whole` is set, one without a
point and an exponent stays a whole number, which is not differentiated. Floating-point arrays in files become
float64, complex ones complex128; arrays of whole numbers and of Booleans stay as they are.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from adbench.model.errors import BadFile, UnknownName, UsageError, nearest_names

MOST_SHOWN = 40  # characters of a text around its fault
COMPLEX = re.compile(r"\d[\d.]*j$")
SUFFIXES = (".json", ".npy", ".npz")
HOW = "Pass scalars (--at 1.0 2.0), JSON in quotes (--at '[[1, 2], [3, 4]]') or a file (--at @file.npz)"


class InFile(NamedTuple):
    """A file that holds a value, and the name of one array in it; "" for all."""

    path: Path
    key: str

    @classmethod
    def of(cls, text: str) -> InFile | None:
        """What a text such as "@file.npz:key" names; None for a text that names no file."""
        if not text.startswith("@"):
            return None
        path, colon, key = text[1:].rpartition(":")
        if colon and path.endswith((".npz", ".json")):
            return cls(Path(path), key)
        return cls(Path(text[1:]), "")

    def __str__(self) -> str:
        return f"@{self.path}{':' if self.key else ''}{self.key}"


def positional(texts: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
    """The values of `--at`: those in order, and by name the arrays of each `@file.npz`.

    A text may hold several numbers: "1.0 2.0" or "1.0,2.0". Raises UsageError (BadFile for a file) in one line.
    """
    values: list[Any] = []
    by_name: dict[str, Any] = {}
    for text in texts:
        place = InFile.of(text)
        if place is not None and place.path.suffix == ".npz" and not place.key:
            by_name |= _in_file(place, "--at", whole=False)
        elif (numbers := _numbers(text)) is not None:
            values += numbers
        else:
            values.append(value(text, "--at"))
    return values, by_name


def named(texts: Iterable[str]) -> dict[str, Any]:
    """The values of `--arg name=VALUE`, by name. A value that is no JSON is a text. Raises UsageError in one line."""
    values: dict[str, Any] = {}
    for text in texts:
        name, equals, rest = text.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(f"--arg {text!r} is not of the form name=VALUE; write --arg n=3")
        if name in values:
            raise UsageError(f"--arg gives {name!r} twice; remove one")
        values[name] = value(rest, f"--arg {name}", whole=True)
    return values


def value(text: str, option: str, *, whole: bool = False) -> Any:
    """One value. Raises UsageError, which names the option.

    whole   a whole number stays one, and a text that does not look like JSON is a text
    """
    place = InFile.of(text)
    if place is not None:
        return _in_file(place, option, whole=whole)
    numbers = _numbers(text)
    if numbers is not None and len(numbers) == 1 and not (whole and _is_whole(text)):
        return numbers[0]
    if whole and not _looks_like_json(text):
        return text
    if not whole and not _looks_like_json(text):
        raise UsageError(f"{option}: {_short(text)!r} is not a number. {HOW}")
    return _from_json(text, option, whole=whole)


def absolute(text: str) -> str:
    """A text of `--at` or `--arg` with the path of its file, if it names one, from the root."""
    name, equals, rest = text.partition("=@")
    place = InFile.of(f"@{rest}" if equals and name.isidentifier() else text)
    if place is None:
        return text
    return f"{name + '=' if equals and name.isidentifier() else ''}{place._replace(path=place.path.resolve())}"


def files_digest(texts: Iterable[str]) -> str:
    """A digest of the contents of all files that these texts name; "none" without files."""
    places = [place for text in texts if (place := InFile.of(text[text.find("=@") + 1 :]))]
    contents = [place.path.read_bytes() for place in places if place.path.is_file()]
    return hashlib.sha256(b"\0".join(contents)).hexdigest() if contents else "none"


def nearest(name: str, known: Iterable[str]) -> str:
    """ "; did you mean 'f'?" for the known name most like this one; "" where none is."""
    close = nearest_names(name, known, 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _numbers(text: str) -> list[Any] | None:
    """The numbers that blanks or commas separate; None for any other text. A complex one has digits: j is a text."""
    parts = text.replace(",", " ").split()
    try:
        return [complex(part) if COMPLEX.search(part) else float(part) for part in parts] or None
    except ValueError:
        return None


def _is_whole(text: str) -> bool:
    return text.strip().lstrip("+-").isdecimal()


def _looks_like_json(text: str) -> bool:
    return text.lstrip()[:1] in ("[", "{", '"') or text.strip() in ("true", "false", "null") or _is_whole(text)


def _from_json(text: str, option: str, *, whole: bool) -> Any:
    try:
        return _converted(json.loads(text, parse_int=int if whole else float))
    except json.JSONDecodeError as error:
        if error.pos >= len(text.rstrip()):
            where = f"after {_short(text)!r}, where it ends"
        else:
            where = f"at {text[error.pos :][:MOST_SHOWN]!r} (line {error.lineno}, column {error.colno})"
        raise UsageError(f"{option} is not JSON: {error.msg} {where}. Put JSON in quotes: '[[1, 2], [3, 4]]'") from None
    except (RecursionError, OverflowError, ValueError) as error:
        raise UsageError(f"{option} cannot be read as JSON: {error}. {HOW}") from None


def _converted(content: Any) -> Any:
    """JSON's values as arguments: lists of numbers, nested evenly, as float64 arrays."""
    if isinstance(content, Mapping):
        return {name: _converted(each) for name, each in content.items()}
    if not isinstance(content, list):
        return content
    if _is_even(content):
        return np.array(content, dtype=np.float64)
    return [_converted(each) for each in content]


def _is_even(items: list[Any]) -> bool:
    """Whether nested lists are a full array of numbers."""
    if not any(isinstance(each, list) for each in items):
        return all(isinstance(each, int | float) and not isinstance(each, bool) for each in items)
    return all(isinstance(each, list) and _is_even(each) for each in items) and len(set(map(_shape, items))) == 1


def _shape(content: Any) -> tuple[int, ...]:
    """The shape of nested lists by their first entries."""
    return (len(content), *_shape(content[0] if content else None)) if isinstance(content, list) else ()


def _in_file(place: InFile, option: str, *, whole: bool) -> Any:
    path = place.path
    if not path.is_file():
        there = (file.name for file in path.parent.glob("*") if file.suffix in SUFFIXES)
        raise BadFile(f"{option}: there is no file {str(path)!r}{nearest(path.name, there)}")
    if path.suffix in (".npy", ".npz"):
        return _arrays(place, option)
    if path.suffix != ".json":
        raise BadFile(f"{option}: {str(path)!r} is not a .json, .npy or .npz file; save the values as one of these")
    try:
        content = _from_json(path.read_text(encoding="utf-8"), f"{option}: {path}", whole=whole)
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(f"{option}: {path} cannot be read: {error}") from None
    return _entry(content, place, option) if place.key else content


def _arrays(place: InFile, option: str) -> Any:
    """The array of a file, or those of an archive by name. Nothing is unpickled."""
    try:
        with place.path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return _array(loaded, option, place)
            if place.key:
                _entry(dict.fromkeys(loaded.files), place, option)
            names = [place.key] if place.key else loaded.files
            arrays = {name: _array(loaded[name], option, place._replace(key=name)) for name in names}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        text = str(error)
        if "allow_pickle" in text or "pickled" in text:
            raise BadFile(
                f"{option}: {place} holds no array of numbers, and adbench never loads pickled objects. "
                "Save numbers: np.savez(path, x=np.asarray(x, dtype=float))"
            ) from None
        raise BadFile(f"{option}: {place} cannot be read: {text}") from None
    return arrays[place.key] if place.key else arrays


def _array(array: np.ndarray, option: str, place: InFile) -> Any:
    """As an argument: in double precision, or an array that is not differentiated. One without axes is a number."""
    if array.dtype.kind not in "fciub":
        raise BadFile(f"{option}: {place} holds {array.dtype}; save numbers")
    argument = array.astype({"f": np.float64, "c": np.complex128}.get(array.dtype.kind, array.dtype))
    return argument if argument.shape else argument.item()


def _entry(content: Any, place: InFile, option: str) -> Any:
    if not isinstance(content, Mapping):
        raise BadFile(f"{option}: {place.path} has no named entries; remove ':{place.key}'")
    if place.key not in content:
        raise UnknownName(f"entry of {place.path}", place.key, content)
    return content[place.key]


def _short(text: str) -> str:
    """The end of a text, of a length that a person reads."""
    return text if len(text) <= MOST_SHOWN else f"…{text[-MOST_SHOWN:]}"
