"""`--function module:f --at 1.0 2.0`: a user's function and its arguments, by their texts on the command line."""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from inspect import Parameter, isclass, isfunction, signature
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from adbench.catalog import argument_values
from adbench.catalog.argument_values import nearest
from adbench.catalog.dependencies import dependencies, digest, file_of, packages_of
from adbench.catalog.discovery import first_line, import_as
from adbench.catalog.double_precision import import_in_double
from adbench.catalog.generated_files import file_stem, generated_file
from adbench.model.case import Case
from adbench.model.errors import BadFile, UnknownName, UsageError, contained

TEXT = '''"""{title}"""
# The files that hold the function and its arguments: {depends}
from adbench.catalog.ad_hoc import AdHoc
from adbench.functions.user_function import function_case

CASE = {asked!r}.case(function_case)
'''
SIZES = (10, 100, 1000)
"""Of a function whose arguments another function makes."""
SIZE = "the size"
"""The name of the input that is the size."""

Make = Callable[..., Case]
"""make(f, args, kwargs, **options) -> the case of one point."""
Passed = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and keyword arguments."""


@dataclass(frozen=True)
class AdHoc:
    """A function by its name, and its arguments, as texts of the command line: the same in every process.

    name    module:f, file.py:f, or with dots: module:object.method
    path    where modules are found, before sys.path
    at      the values of positional arguments (argument_values.py)
    arg     name=VALUE of keyword arguments
    wrt     the arguments to differentiate in; none: every floating-point one
    inputs  the name of a function, in the same forms: inputs(n) returns the arguments for size n
    backend decides for which library the function is written, if nothing else does
    output  the result that counts; none: every floating-point result
    branchwise   check the derivative along the program's branch
    constants    "forbid": numbers that the function declares constant are active all the same
    double  modules are imported with float64 defaults; not for a kernel, which runs with its own
    """

    name: str
    path: tuple[str, ...]
    at: tuple[str, ...] = ()
    arg: tuple[str, ...] = ()
    wrt: tuple[str, ...] = ()
    inputs: str | None = None
    backend: str | None = None
    output: str | None = None
    branchwise: bool = False
    constants: str = "allow"
    double: bool = field(default=True, repr=False)

    def function(self) -> Callable[..., Any]:
        """The function. Raises UsageError if it is missing."""
        return self.named(self.name, "--function")

    def named(self, name: str, option: str) -> Callable[..., Any]:
        """The function of that name, for this option. Raises UsageError if it is missing."""
        return named_function(_absolute(name), self.path, option, double=self.double)

    def arguments(self) -> Passed:
        """The positional and the keyword arguments. Raises UsageError in one line where they do not fit."""
        values, by_name = argument_values.positional(self.at)
        keywords = argument_values.named(self.arg)
        if twice := sorted(set(by_name) & set(keywords)):
            raise UsageError(f"both --at and --arg give {twice[0]!r}; remove one")
        return fitted(self.function(), values, {**by_name, **keywords}, self.name)

    def case(self, make: Make) -> Case:
        """The function at these arguments; with `inputs` at any size. Raises UsageError as the others do."""
        options = {name: getattr(self, name) for name in ("backend", "output", "branchwise", "constants")}
        f, make = self.function(), partial(make, wrt=self.wrt or None, **options)
        arguments = self.arguments_by_size()
        if self.inputs is None:
            return make(f, *arguments(SIZES[0]))
        f_sized = Sized(lambda n: make(f, *arguments(n)), self.inputs)
        return replace(f_sized.of_size(SIZES[0]), f=f_sized, inputs=f_sized.inputs, sizes=SIZES)

    def sizes_of(self, asked: Sequence[str]) -> list[int]:
        """The numbers of -n, by default one. Raises UsageError if they have no meaning, or are not sizes."""
        if asked and self.inputs is None:
            raise UsageError("-n has no meaning without --inputs; remove it, or give a function of n with --inputs")
        for text in asked:
            if not (text.isdecimal() and int(text)):
                raise UsageError(f"-n {text!r} is not a size; write a whole number from 1, for example -n 100")
        return [int(text) for text in asked] or [SIZES[0]]

    def arguments_by_size(self) -> Callable[[int], Passed]:
        """arguments(n) -> those for size n; without `inputs` the same for all. Raises UsageError in one line."""
        if self.inputs is None:
            passed = self.arguments()
            return lambda n: passed
        return partial(self._arguments_of_size, self.named(self.inputs, "--inputs"))

    def _arguments_of_size(self, inputs: Callable[..., Any], n: int) -> Passed:
        """What inputs(n) returns: a tuple is the positional arguments, all else is one argument."""
        try:
            with contained():
                returned = inputs(n)
        except Exception as error:  # a user's function may raise anything
            raise UsageError(f"{self.inputs}({n}) raises {type(error).__name__}: {first_line(error)}") from error
        return (returned if isinstance(returned, tuple) else (returned,)), argument_values.named(self.arg)

    def case_file(self) -> Path:
        """A case file for it, in the cache: `adbench.check_cell` repeats a cell with it from any folder."""
        path = list(self.path)
        sources = [_source(name, path) for name in (self.name, self.inputs) if name]
        depends = [digest(dependencies(source, path)) if source else "unknown" for source in sources]
        depends.append(argument_values.files_digest((*self.at, *self.arg)))
        title = f"{self.name} at {' '.join(self.at)}".replace("\\", "/").replace('"""', "'''").split("\n")[0]
        text = TEXT.format(title=title, depends=" ".join(depends), asked=self)
        return generated_file("cases", file_stem(_split(self.name, "--function")[1]), text)


def ad_hoc(
    name: str,
    at: Sequence[str] = (),
    arg: Sequence[str] = (),
    wrt: Sequence[str] = (),
    inputs: str | None = None,
    **options: Any,
) -> AdHoc:
    """The `AdHoc` of a command, with all paths from the root. Modules are found from the working folder first, as with
    `python -m`."""
    path = tuple(dict.fromkeys([str(Path.cwd()), *(entry for entry in sys.path if entry)]))
    at, arg = (tuple(map(argument_values.absolute, texts)) for texts in (at, arg))
    return AdHoc(_absolute(name), path, at, arg, tuple(wrt), _absolute(inputs) if inputs else None, **options)


class Sized:
    """`f(xp, **inputs)` of a case of many sizes, from one case for each size, which it calls at that size.

    Raises UsageError where another size has other arguments to differentiate in. `name` is for this message.
    """

    def __init__(self, of_size: Callable[[int], Case], name: str) -> None:
        self.of_size, self.name = cache(of_size), name
        self.__name__ = self.__qualname__ = self.of_size(SIZES[0]).name

    def __call__(self, xp: Any, /, **inputs: Any) -> Any:
        """The value; an input is the size, because the function's other inputs depend on it."""
        return self.of_size(inputs.pop(SIZE)).f(xp, **inputs)

    def inputs(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        """The inputs at this size."""
        first, this = self.of_size(SIZES[0]), self.of_size(n)
        if this.wrt != first.wrt:
            both = f"{', '.join(this.wrt)} for {n}, {', '.join(first.wrt)} for {SIZES[0]}"
            raise UsageError(
                f"{self.name} returns different arguments for different sizes: {both}; return the same ones"
            )
        return {SIZE: n, **this.inputs(n, rng)}


def at_size(case: Case, size: int) -> Case:
    """The case of this size alone, of a case that is made from one for each; any other case as it is."""
    if not isinstance(case.f, Sized):
        return case
    return replace(case.f.of_size(size), name=case.name, file=case.file, sizes=(size,))


def named_function(name: str, path: Sequence[str], option: str, *, double: bool = True) -> Callable[..., Any]:
    """The function of that name; double: its module is imported with float64 defaults.

    Raises UsageError in one line for a fault in its module, or if it is no function.
    """
    where, attributes = _split(name, option)
    sys.path[:0] = [entry for entry in path if entry not in sys.path[: len(path)]]
    if double:
        import_in_double()
    value: Any = _module(where, path)
    parts = attributes.split(".")
    for place, attribute in enumerate(parts):
        holder, known = value, [each for each in dir(value) if not each.startswith("_")]
        try:
            value = getattr(holder, attribute)
        except AttributeError:
            of = ":".join(filter(None, (where, ".".join(parts[:place]))))
            callables = [name for name in known if callable(getattr(holder, name, None))]
            raise UnknownName("function or object", attribute, callables or known, of) from None
        if isclass(holder) and isfunction(value) and next(iter(signature(value).parameters), "") == "self":
            raise UsageError(
                f"{name} is a method that needs an object; write `made = {holder.__name__}(...)` in {where} and name "
                f"{where}:made.{attribute}"
            )
    if isclass(value):
        raise UsageError(f"{name} is a class; name a function, or a method of an object in {where}")
    if not callable(value):
        raise UsageError(f"{name} has type {type(value).__name__} and cannot be called; name a function in {where}")
    return value  # type: ignore[no-any-return]


def fitted(
    f: Callable[..., Any], values: Sequence[Any], named: Mapping[str, Any], name: str
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments as the function takes them. Plain numbers are one argument each, or else one vector.

    Raises UsageError in one line for another number of arguments than the function takes, and for an unknown name.
    """
    try:
        parameters = list(signature(getattr(f, "forward", f)).parameters.values())  # of a torch.nn.Module
    except (TypeError, ValueError):  # written in C: nothing is known about its arguments
        return tuple(values), dict(named)
    parameters = parameters[1:] if parameters and parameters[0].name == "xp" else parameters
    if not parameters:
        raise UsageError(f"{name} takes no arguments to differentiate; give it a parameter")
    kinds = {each.kind for each in parameters}
    by_name = [each for each in parameters if each.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)]
    known = [each.name for each in by_name]
    if unknown := [each for each in named if each not in known and Parameter.VAR_KEYWORD not in kinds]:
        raise UnknownName(f"argument of {name}", unknown[0], known)
    free = [each for each in parameters if each.kind in _POSITIONAL and each.name not in named]
    least = sum(each.default is Parameter.empty for each in free)
    most = max(len(values), len(free)) if Parameter.VAR_POSITIONAL in kinds else len(free)
    takes = ", ".join(each.name for each in free)
    if not values and least:
        raise UsageError(f"{name} needs a value for {takes}: give one with --at, for example --at 1.0")
    if len(values) > most and least <= 1 <= most and all(isinstance(each, float | complex) for each in values):
        values = [np.array(values)]
    if not least <= len(values) <= most:
        many = str(most) if least == most else f"{least} to {most}"
        count = f"{len(values)} argument{'' if len(values) == 1 else 's'}"
        takes = takes or "all by --arg"
        raise UsageError(f"--at gives {count}, but {name} takes {many} ({takes}); give {many} with --at")
    needed = [each.name for each in by_name if each.kind is Parameter.KEYWORD_ONLY and each.default is Parameter.empty]
    if missing := [each for each in needed if each not in named]:
        raise UsageError(f"{name} needs {missing[0]!r} too: give it with --arg {missing[0]}=VALUE")
    together = len([each for each in parameters if each.kind in _POSITIONAL][: len(values)])
    in_order = [each.name for each in parameters[:together]] == [each.name for each in free[:together]]
    if in_order:
        return tuple(values), dict(named)
    return (), {**{each.name: value for each, value in zip(free, values, strict=False)}, **named}


_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def _split(name: str, option: str) -> tuple[str, str]:
    module, colon, attribute = name.rpartition(":")
    attribute = unicodedata.normalize("NFKC", attribute)  # as Python reads identifiers
    if any("\ud800" <= letter <= "\udfff" for letter in name):
        raise UsageError(f"{option} {name!r} is not valid {sys.getfilesystemencoding()}; give a name that is")
    if not (colon and module and all(part.isidentifier() for part in attribute.split("."))):
        raise UsageError(f"{option} {name!r} is not a function; write module:function or file.py:function")
    return module, attribute


def _is_file(module: str) -> bool:
    return module.endswith(".py") or "/" in module


def _absolute(name: str) -> str:
    module, colon, attribute = name.rpartition(":")
    return f"{os.path.realpath(module)}{colon}{attribute}" if colon and _is_file(module) else name


def _source(name: str, path: Sequence[str]) -> Path | None:
    """The file of the function's module, if it is Python."""
    module = _split(name, "--function")[0]
    return Path(module) if _is_file(module) else file_of(module, path)


def _module(where: str, path: Sequence[str]) -> ModuleType:
    """Import a module by its name, or a file. Raises BadFile, in one line, for whatever the import raises."""
    if _is_file(where) and not Path(where).is_file():
        raise BadFile(f"there is no file {where!r}{nearest(where, map(str, Path(where).parent.glob('*.py')))}")
    try:
        with contained():
            return _import_file(Path(where)) if _is_file(where) else importlib.import_module(where)
    except ModuleNotFoundError as error:
        if not _is_file(where) and error.name and f"{where}.".startswith(f"{error.name}."):
            known = (file.stem for file in Path(path[0]).glob("*.py"))
            raise UsageError(
                f"there is no module {error.name!r} in {path[0]}, and none is installed{nearest(error.name, known)}"
            ) from None
        raise BadFile(f"{where} cannot be imported: {first_line(error)}") from error
    except Exception as error:  # report any fault of a user's module
        raise BadFile(f"{where} cannot be imported: {type(error).__name__}: {first_line(error)}") from error


def _import_file(file: Path) -> ModuleType:
    """Import a file: by its full name if it is in a package, else under a name that no other module has.

    So a file called `random.py` hides no module. Its folder is on the path, as with `python file.py`.
    """
    packages, folder = packages_of(file)
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    if packages:
        return importlib.import_module(".".join((*packages, file.stem)))
    name = f"adbench_function_{file_stem(file.stem)}_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}"
    return import_as(name, file)
