"""A shared object in this process, and a case opened in it: the C interface of `backends/native/exports.hpp`."""

from __future__ import annotations

import _ctypes
import ctypes
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from adbench.execution.native.build import folder
from adbench.model.errors import Unsupported

STATIC = -1  # the axes of an int, a bool or a text
ROOM = 1000  # bytes for a message from C++


class LibraryError(RuntimeError):
    """An exception from a C++ library or a case's C++ implementation."""


class Shared:
    """A loaded shared object. PyDLL holds the interpreter's lock, so that two Python threads never run one library at
    once."""

    def __init__(self, path: Path) -> None:
        self.dll = ctypes.PyDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)
        pointer, text, number, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_size_t
        self.open = self._function("open", pointer, size, pointer, pointer, number, text, size)
        self.has = self._function("has", number, pointer, number)
        self.bind = self._function("bind", None, pointer, number, pointer, pointer, pointer)
        self.run = self._function("run", ctypes.c_double, pointer)
        self.error = self._function("error", number, pointer, text, size)
        self.close = self._function("close", None, pointer)

    def _function(self, name: str, result: Any, *arguments: Any) -> Any:
        function = getattr(self.dll, f"adbench_{name}")
        function.restype, function.argtypes = result, arguments
        return function


class Opened:
    """A C++ implementation on a library, for inputs of these shapes, None for a static leaf. The last reference closes
    it; `unload` also unloads the shared object."""

    def __init__(
        self, name: str, shared: Shared, shapes: Sequence[tuple[int, ...] | None], variant: int, *, unload: bool
    ) -> None:
        self.name, self.shared = name, shared
        axes = [STATIC if shape is None else len(shape) for shape in shapes]
        extents = [extent for shape in shapes for extent in shape or ()]
        message = ctypes.create_string_buffer(ROOM)
        c_axes, c_extents = (ctypes.c_int * len(axes))(*axes), (ctypes.c_int64 * len(extents))(*extents)
        self.handle: int = shared.open(len(axes), c_axes, c_extents, variant, message, ROOM)
        if not self.handle:
            raise LibraryError(f"{name}: {_text(message)}")
        weakref.finalize(self, _closed, shared, self.handle, unload)

    def complain(self) -> None:
        """Raise the exception that C++ has thrown since the last call, if any."""
        message = ctypes.create_string_buffer(ROOM)
        thrown = self.shared.error(self.handle, message, ROOM)
        if thrown:
            raise (Unsupported if thrown == 2 else LibraryError)(f"{self.name}: {_text(message)}")


@cache
def shared(path: Path) -> Shared:
    """The shared object, loaded once."""
    return Shared(path)


def copied(path: Path, settings: Mapping[str, str]) -> Shared:
    """A copy of the shared object, loaded separately: it has its own process-wide state.

    settings   files, by name, that the library reads from the working folder when it is loaded; `{scratch}` in them is
               a writable folder
    """
    scratch = folder() / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    for name, text in settings.items():
        written = scratch / f"{name}.{os.getpid()}"
        written.write_text(text.format(scratch=scratch), encoding="utf-8")
        written.replace(scratch / name)
    with tempfile.NamedTemporaryFile(dir=scratch, suffix=".so") as copy, path.open("rb") as original:
        shutil.copyfileobj(original, copy)
        copy.flush()
        with _quietly_in(scratch):  # the library reports on stderr that it reads settings
            return Shared(Path(copy.name))


@contextmanager
def _quietly_in(place: Path) -> Iterator[None]:
    """Work in that folder, and discard output to stderr."""
    before, stderr, nothing = Path.cwd(), os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.chdir(place)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.chdir(before)
        os.close(stderr)
        os.close(nothing)


def _closed(loaded: Shared, handle: int, unload: bool) -> None:
    loaded.close(handle)
    if unload:
        _ctypes.dlclose(loaded.dll._handle)


def _text(message: Any) -> str:
    return str(message.value.decode(errors="replace").partition("\n")[0])
