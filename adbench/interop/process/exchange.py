"""Arrays and nested inputs as JSON: base64 of little-endian float64 with a shape, or a file for large arrays."""

from __future__ import annotations

import base64
import binascii
import contextlib
import math
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any
from weakref import finalize

import numpy as np
import psutil
from numpy.typing import NDArray

LARGE = 2**20  # larger arrays (bytes) go through a file instead of a line
PREFIX = "adbench-arrays-"


class BadValue(ValueError):
    """A value is damaged; the message gives the reason."""


class Exchange:
    """A folder in memory for large arrays, that both sides can access. It is removed with this object."""

    def __init__(self, large: int = LARGE) -> None:
        self.large = large
        home = Path("/dev/shm")
        place = home if home.is_dir() and os.access(home, os.W_OK) else Path(tempfile.gettempdir())
        _remove_orphans(place)
        self.folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=place))
        finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self._number = 0

    def encoded(self, value: Any) -> Any:
        """Encode a value of a case's input: an array or a float as an array; a list, tuple or dict; or a static
        value."""
        if isinstance(value, dict):
            return {"dict": {str(name): self.encoded(part) for name, part in value.items()}}
        if isinstance(value, list | tuple):
            return {"list": [self.encoded(part) for part in value]}
        if isinstance(value, bool | int | str) and not isinstance(value, np.generic):
            return value
        array = np.asarray(value, dtype="<f8")
        shape = list(array.shape)
        data = array.tobytes()
        if len(data) < self.large:
            return {"shape": shape, "base64": base64.b64encode(data).decode()}
        self._number += 1
        name = f"in{self._number}"
        (self.folder / name).write_bytes(data)
        return {"shape": shape, "file": name}

    def decoded(self, value: Any) -> Any:
        """Decode a value that fits the schema to arrays in lists and dicts. Raises BadValue."""
        if not isinstance(value, dict):
            return value
        if "list" in value:
            return [self.decoded(part) for part in value["list"]]
        if "dict" in value:
            return {name: self.decoded(part) for name, part in value["dict"].items()}
        return self._array(value)

    def clear(self) -> None:
        """Remove the files of a finished exchange."""
        for file in self.folder.iterdir():
            with contextlib.suppress(OSError):
                file.unlink()

    def _array(self, value: dict[str, Any]) -> NDArray[np.float64]:
        shape = tuple(value["shape"])
        try:
            data = self._file(value["file"]) if "file" in value else base64.b64decode(value["base64"], validate=True)
        except (binascii.Error, ValueError) as error:
            raise BadValue(f"an array's base64 is damaged: {error}") from error
        if len(data) != 8 * math.prod(shape):
            raise BadValue(f"an array of shape {shape} needs {8 * math.prod(shape)} bytes; got {len(data)}")
        return np.frombuffer(data, dtype="<f8").astype(np.float64).reshape(shape)

    def _file(self, name: str) -> bytes:
        try:
            return (self.folder / name).read_bytes()
        except OSError as error:
            raise BadValue(f"the file {name} of an array cannot be read: {error.strerror}") from error


def _remove_orphans(place: Path) -> None:
    """Remove the folders of killed processes."""
    for folder in place.glob(f"{PREFIX}*"):
        owner = folder.name.removeprefix(PREFIX).partition("-")[0]
        if owner.isdigit() and not psutil.pid_exists(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)
