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
import optree

from adbench.tape.compiled.lowering.storage import Shape
from adbench.tape.compiled.runtime.entry_code import StaticArgument, write_entry
from adbench.tape.machine.layout import layouts_are_known
from adbench.tape.machine.llvm import TAKES_ARRAY, Loaded, builtin_function
from adbench.tape.trees import NAMESPACE, tree_flatten

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
    """

    def __init__(
        self,
        inputs: Sequence[Shape | StaticArgument],
        results: Sequence[Shape],
        template: Any,
        dispatch: DispatchTable,
        otherwise: Callable[..., Any],
        owner: Any,
    ) -> None:
        self._dispatch = dispatch  # keeps its workspaces in memory
        text, environment = write_entry(inputs, results, template, dispatch.memory, otherwise)
        self._loaded = Loaded(text, environment, level=1)
        self.vectorcall = self._loaded.address("vectorcall")
        self.call: Callable[..., Any] = builtin_function("compiled", self._loaded.address("entry"), TAKES_ARRAY, owner)
        self._place = next(k for k, thing in enumerate(environment) if thing is otherwise)

    def pass_on(self, otherwise: Callable[..., Any]) -> None:
        """Pass calls that this entry does not handle on to another function."""
        self._loaded.replace(self._place, otherwise)


# Instances that CPython calls by their own machine code, without a method written in Python (PEP 590). A type with a
# *vectorcall offset* has, at this offset in each instance, the address of the function; while it is zero, CPython calls
# `__call__`. A class written in Python cannot have such a function, but it can inherit the memory for the address from
# `Native`, and `call_natively` sets its flag.

ADDRESS = 16
"""The offset of the address: right after the count of references and the type."""

_HAVE_VECTORCALL, _BASETYPE = 1 << 11, 1 << 10
_TYPE_FLAGS, _TYPE_OFFSET = 168, 56  # offsets of a type's flags and of its vectorcall offset
_MEMBERS, _SSIZE, _READ_ONLY = 72, 19, 1


class _Member(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Slot(ctypes.Structure):
    _fields_ = (("number", ctypes.c_int), ("value", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("size", ctypes.c_int),
        ("item_size", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.c_void_p),
    )


_members = (_Member * 2)(_Member(b"__vectorcalloffset__", _SSIZE, ADDRESS, _READ_ONLY, None))
_slots = (_Slot * 2)(_Slot(_MEMBERS, ctypes.addressof(_members)))
_spec = _Spec(b"adbench.tape.compiled.Native", ADDRESS + 8, 0, _BASETYPE, ctypes.addressof(_slots))


def _native_type() -> Any:
    """A type whose instances have memory for the address; `object` if CPython's layouts are not as expected."""
    if not layouts_are_known():
        return object
    make = ctypes.pythonapi.PyType_FromSpec
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p]
    return make(ctypes.addressof(_spec))


Native: Any = _native_type()


def call_natively(instance: Any, address: int) -> None:
    """Let CPython's calls of an instance of a subclass of `Native` run this function, which must live as long."""
    cls = type(instance)
    if Native is object or ctypes.c_ssize_t.from_address(id(cls) + _TYPE_OFFSET).value != ADDRESS:
        return
    flags = ctypes.c_ulong.from_address(id(cls) + _TYPE_FLAGS)
    if flags.value == cls.__flags__:
        flags.value |= _HAVE_VECTORCALL
        ctypes.c_int64.from_address(id(instance) + ADDRESS).value = address


def not_here(*_args: Any) -> None:
    """The answer of an entry of leaves that cannot handle a call: None, which is no result."""


class NestedEntry:
    """An entry point around that of a call's leaves: for arguments and results in nests, and for sparse matrices.

    call         a function of the arguments
    vectorcall   0: machine code exists for the leaves only
    """

    vectorcall = 0

    def __init__(
        self,
        entry: CompiledEntry,
        args: Sequence[Any],
        finished: Callable[[Sequence[Any]], Any],
        otherwise: Callable[..., Any],
    ) -> None:
        """`args`: a call's arguments, whose structure all others must have. `finished` makes the result of its leaves.

        Other calls go to `otherwise`.
        """
        self._entry = entry  # keeps its code in memory
        self._otherwise = otherwise
        flatten: Any = optree.tree_flatten
        run, structure = entry.call, tree_flatten(tuple(args))[1]
        is_flat = structure == tree_flatten((0.0,) * len(args))[1]

        def call(*args: Any) -> Any:
            if is_flat:
                parts = run(*args)
            else:
                leaves, nesting = flatten(args, namespace=NAMESPACE)
                parts = run(*leaves) if nesting == structure else None
            return self._otherwise(*args) if parts is None else finished(parts)

        self.call = call

    def pass_on(self, otherwise: Callable[..., Any]) -> None:
        """Pass calls that this entry does not handle on to another function."""
        self._otherwise = otherwise
