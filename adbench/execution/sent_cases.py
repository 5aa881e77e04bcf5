"""Functions and cases of the user's process, as case files that worker processes load.

A worker is a fresh interpreter without any state of its parent. A case file imports the function or reads its pickle.
Files stay in the cache, so that `adbench.check_cell` can repeat a cell later, from any folder.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import os
import pickle
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Literal, get_args

from adbench.catalog.dependencies import dependencies, digest, file_of
from adbench.catalog.discovery import first_line
from adbench.catalog.double_precision import import_in_double
from adbench.catalog.generated_files import file_stem, generated_file
from adbench.execution.workers.process import MARK
from adbench.functions.recognition import only_family
from adbench.functions.user_function import function_case
from adbench.model.case import Case
from adbench.model.errors import UnknownName, UsageError
from adbench.optional import library

Send = Literal["import", "pickle"]
"""Ways to send a function to workers: they import its module, or get its pickle by cloudpickle."""

INSTEAD: Mapping[Send, str] = {
    "import": "put it in a module, or use send='pickle' (which needs cloudpickle)",
    "pickle": "put it in a module",
}
DATA = "case.pickle"
TEXT = '''"""{title}"""
# Sent by {send}. Digest of its dependencies: {depends}
from adbench.execution.sent_cases import {needs}

CASE = {case}
'''


def sent_case(chosen: Case | tuple[Any, ...], send: Send, backends: Sequence[str] = ()) -> Path:
    """Write a case file for a Case, or for a function with its arguments: (f, *arguments).

    send      "import" for functions of modules; "pickle" for everything that cloudpickle can serialise
    backends  the named ones, which may decide for which library the function is written

    Raises UsageError with an alternative if it cannot be sent like this.
    """
    if send not in get_args(Send):
        raise UnknownName("way to send a function", str(send), get_args(Send))
    parts, path, name = _parts(chosen), _path(), _name(chosen)
    if "args" in parts and (family := only_family(backends)) is not None:
        parts["backend"] = family
    module = getattr(parts["f"], "__module__", None)
    title = f"{name}, from Python"
    if send == "import" and (place := _attribute(chosen)) is not None:
        case = f"imported({module!r}, {place!r}, {path!r})"
        text = TEXT.format(title=title, send=send, depends=_depends(module), needs="imported", case=case)
        return generated_file("cases", name, text)
    data = pickled(parts, send)
    depends = f"{_depends(module)} {hashlib.sha256(data).hexdigest()}"
    case = f"received(__file__, {path!r})"
    text = TEXT.format(title=title, send=send, depends=depends, needs="received", case=case)
    return generated_file("cases", name, text, {DATA: data})


def received(file: str, path: Sequence[str]) -> Case:
    """The case of a file that `sent_case` wrote, from the data next to it."""
    _prepare_imports(path)
    parts = pickle.loads(Path(file).with_name(DATA).read_bytes())  # noqa: S301 - code, like the file
    return function_case(**parts) if "args" in parts else Case(**parts)


def imported(module: str, attribute: str, path: Sequence[str]) -> Case:
    """The case named `attribute` in a module."""
    _prepare_imports(path)
    case: Case = getattr(importlib.import_module(module), attribute)
    return case


def _prepare_imports(path: Sequence[str]) -> None:
    """Find modules as in the sending process. The user's process keeps its libraries' defaults."""
    sys.path[:0] = [entry for entry in path if entry not in sys.path]
    if MARK in os.environ:
        import_in_double()


def _parts(case: Case | tuple[Any, ...]) -> dict[str, Any]:
    """The arguments of `function_case` or `Case` that recreate the case."""
    if isinstance(case, tuple):
        if not case or not callable(case[0]):
            raise UsageError(f"{case!r} is not a case; pass (f, *arguments), the name of a case, or a Case")
        return {"f": case[0], "args": case[1:]}
    return {each.name: value for each in fields(case) if (value := getattr(case, each.name)) != _default(each)}


def _default(field: Any) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _name(case: Case | tuple[Any, ...]) -> str:
    """The case's name, or its name in its module, or its function's."""
    f = case[0] if isinstance(case, tuple) else case.f
    own = case.name if isinstance(case, Case) else ""
    attribute = "" if own else _attribute(case)
    if attribute == "CASE":  # the only case of its file, named after the file
        attribute = f.__module__.rpartition(".")[2]
    name = own or attribute or getattr(f, "__name__", "") or getattr(getattr(f, "func", f), "__name__", "")
    return file_stem((name or type(f).__name__).replace("<lambda>", "function"))


def _attribute(case: Case | tuple[Any, ...]) -> str | None:
    """The name of this case in its function's module, or None."""
    module = sys.modules.get(getattr(case.f, "__module__", None) or "") if isinstance(case, Case) else None
    if module is None or module.__name__ == "__main__":
        return None
    return next((name for name, value in vars(module).items() if value is case), None)


def _path() -> list[str]:
    """The paths on which this process finds modules that are not installed."""
    installed = [Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders = dict.fromkeys(Path(entry).resolve() for entry in sys.path)
    return [str(folder) for folder in folders if folder.is_dir() and not any(map(folder.is_relative_to, installed))]


def _depends(module: str | None) -> str:
    """A digest of the module's file and of everything that it imports."""
    source = file_of(module, sys.path) if module and module != "__main__" else None
    return digest(dependencies(source, sys.path)) if source else "unknown"


def _reduced_wrapper(obj: Any) -> Any:
    """How to pickle an object that wraps a function: by its name in its module, if it has one. NotImplemented for other
    objects."""
    if "__wrapped__" not in getattr(obj, "__dict__", {}):
        return NotImplemented
    module, name = getattr(obj, "__module__", None), getattr(obj, "__name__", None)
    if module != "__main__" and name and getattr(sys.modules.get(module or ""), name, None) is obj:
        return name
    if type(obj).__name__ in ("custom_vjp", "custom_jvp") and type(obj).__module__.startswith("jax."):
        return _empty, (type(obj),), vars(obj)  # jax's own pickling drops the function
    return NotImplemented


def _empty(kind: type) -> Any:
    return object.__new__(kind)


def pickled(parts: Mapping[str, Any], send: Send) -> bytes:
    """The pickle of the parts: functions and classes by module and name, or by cloudpickle for "pickle".

    Raises UsageError in one line, MissingLibrary without cloudpickle.
    """
    kind: Any = pickle if send == "import" else library("cloudpickle", "send='pickle'")

    class Pickler(kind.Pickler):  # type: ignore[misc]  # cloudpickle has no types
        def reducer_override(self, obj: Any) -> Any:
            if send == "import" and getattr(obj, "__module__", None) == "__main__" and hasattr(obj, "__qualname__"):
                where = f"{obj.__qualname__} is defined in __main__ or in a notebook"
                raise UsageError(f"the worker processes cannot import it: {where}; {INSTEAD[send]}")
            reduced = _reduced_wrapper(obj)
            return super().reducer_override(obj) if reduced is NotImplemented and send == "pickle" else reduced

    buffer = io.BytesIO()
    try:
        Pickler(buffer).dump(dict(parts))
    except UsageError:
        raise
    except Exception as error:  # an object's method may raise anything
        raise UsageError(f"it cannot be pickled: {first_line(error)}; {INSTEAD[send]}") from error
    return buffer.getvalue()
