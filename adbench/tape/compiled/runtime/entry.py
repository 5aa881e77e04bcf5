"""The entry point: machine code for one signature, with CPython's own calling convention.

    PyObject *entry(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
    PyObject *vectorcall(PyObject *self, PyObject *const *arguments, size_t count_and_flag, PyObject *names)

It checks every argument against the signature (a float, or a contiguous float64 array of this shape), creates the
result's arrays, runs recordings until the guards of one hold, and returns the result. It allocates nothing else. All
other cases go to a Python function with the same arguments: other types or shapes, no recording whose guards hold, a
NaN among the derivatives, an error.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adbench.tape.compiled.lowering.storage import Shape
from adbench.tape.compiled.runtime.entry_code import StaticArgument, write_entry
from adbench.tape.machine.builtin_function import TAKES_ARRAY, builtin_function
from adbench.tape.machine.llvm import Loaded

TABLE = 64
"""The most recordings that an entry tries."""


class DispatchTable:
    """Memory shared by entry points and Python: recordings to try, and free workspaces.

    0        the number of recordings
    8        the bytes that a workspace needs
    16       the first free workspace; each begins with the address of the next and its own size
    64 + 8k  the address of `run` of recording k; the last valid one comes first
    """

    def __init__(self) -> None:
        self.memory = np.zeros(8 + TABLE, np.int64)
        self._blocks: list[Any] = []

    def add(self, run: int, doubles: int) -> None:
        """Add a recording."""
        count = int(self.memory[0])
        if count < TABLE:
            self.memory[8 + count] = run
            self.memory[0] = count + 1
        if 8 * doubles > self.memory[1] or not self.memory[2]:
            self.reserve(doubles)
            self.grow()

    def reserve(self, doubles: int) -> None:
        """Make new workspaces at least this large."""
        self.memory[1] = max(8 * doubles, int(self.memory[1]))

    def grow(self) -> None:
        """Add a workspace; smaller ones are dropped when next taken."""
        needed = int(self.memory[1])
        block = np.zeros(needed // 8 + 24)
        start = -(-block.ctypes.data // 64) * 64
        ctypes.c_int64.from_address(start).value = int(self.memory[2])
        ctypes.c_int64.from_address(start + 8).value = needed
        self._blocks.append(block)
        self.memory[2] = start

    def borrow(self) -> int:
        """The address of a free workspace, after its header."""
        while True:
            start = int(self.memory[2])
            if not start:
                self.grow()
                continue
            self.memory[2] = ctypes.c_int64.from_address(start).value
            if ctypes.c_int64.from_address(start + 8).value >= self.memory[1]:
                return start + 64

    def give_back(self, work: int) -> None:
        """Return a workspace."""
        ctypes.c_int64.from_address(work - 64).value = int(self.memory[2])
        self.memory[2] = work - 64


class CompiledEntry:
    """A built-in function for one signature. It keeps its owner alive, and so the code that it runs.

    call         the function
    vectorcall   the address of its code for the owner's own calls (see `vectorcall`)
    form         of its results (see `write_entry`)
    """

    def __init__(
        self,
        inputs: Sequence[Shape | StaticArgument],
        results: Sequence[Shape],
        form: str,
        dispatch: DispatchTable,
        otherwise: Callable[..., Any],
        owner: Any,
    ) -> None:
        self.form = form
        text, environment = write_entry(inputs, results, form, dispatch.memory, otherwise)
        self._loaded = Loaded(text, environment, level=1)
        self.vectorcall = self._loaded.address("vectorcall")
        self.call: Callable[..., Any] = builtin_function("compiled", self._loaded.address("entry"), TAKES_ARRAY, owner)
        self._place = next(k for k, thing in enumerate(environment) if thing is otherwise)

    def pass_on(self, otherwise: Callable[..., Any]) -> None:
        """Pass calls that this entry does not handle on to another function."""
        self._loaded.replace(self._place, otherwise)
