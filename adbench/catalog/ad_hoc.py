"""`--function module:f --at 1.0 2.0`: a user's function as a case, in a temporary file."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from adbench.catalog.dependencies import dependencies, digest, file_of
from adbench.model.errors import UsageError

TEXT = '''"""{function} at {numbers}."""
# What the function depends on: {depends}
import importlib
import sys

sys.path[:0] = {path!r}
from adbench.catalog.double_precision import import_in_double
from adbench.execution.in_process import case_of

import_in_double()

function = importlib.import_module({module!r})
for part in {name!r}.split("."):
    function = getattr(function, part)
from inspect import signature

names = [name for name in signature(function).parameters if name != "xp"]
numbers = {numbers!r}
if len(numbers) == 1 or len(names) != len(numbers):  # one number, or a vector
    CASE = case_of(function, (numbers[0],) if len(numbers) == 1 else (list(numbers),), (0,))
else:
    CASE = case_of(function, numbers, tuple(range(len(numbers))))
'''


@contextmanager
def case_file(function: str, at: Sequence[float]) -> Iterator[Path]:
    """The path of a case file for `module:function` at these numbers: one for each argument, or else one vector.

    Modules are found from the working folder first, as with `python -m`. Raises UsageError if the text does not have
    that form or there is no number.
    """
    module, colon, name = function.partition(":")
    if not (colon and module and name):
        raise UsageError(f"--function {function!r} is not of the form module:function")
    if not at:
        raise UsageError("--function needs a point: --at 1.0 2.0")
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"{name.replace('.', '_')}.py"
        path = [str(Path.cwd()), *(entry for entry in sys.path if entry)]
        source = file_of(module, path)
        depends = digest(dependencies(source, path)) if source else "unknown"
        text = TEXT.format(function=function, module=module, name=name, numbers=tuple(at), path=path, depends=depends)
        file.write_text(text, encoding="utf-8")
        yield file


@contextmanager
def asking_for(
    function: str | None, at: str | None, more: Sequence[str], asked: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """The options, with a case for the user's function as `cases` if one is given.

    at, more   the first number of the point, and the arguments that followed it on the command line
    """
    if more and (at is None or function is None):
        raise UsageError(f"there is no option or argument {more[0]!r}; see adbench check --help")
    if function is None:
        if at is not None:
            raise UsageError("--at says where a function is checked; name it with --function module:f")
        yield dict(asked)
        return
    if asked.get("cases"):
        raise UsageError("--function is the case; it does not go with --case")
    with case_file(function, _numbers(" ".join((at or "", *more)))) as file:
        yield {**asked, "cases": (str(file),), "backends": tuple(asked.get("backends") or ("tape",))}


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.replace(",", " ").split()]
    except ValueError as error:
        word = str(error).rpartition(":")[2].strip()
        raise UsageError(f"--at takes numbers, and {word} is none; write --at 1.0 2.0") from None
