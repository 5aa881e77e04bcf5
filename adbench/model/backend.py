"""Backends: one short file describes how to trace, call and wait for a library.

A backend file is a Python module. It must define `prepare`; the other names have defaults for libraries that work on
numpy arrays. docs/how-to/write-a-backend.md explains each of them, and those of variants, devices, types, C++ and
second derivatives; `Source` in adbench/catalog/source.py lists those that are read without importing the file.

    '''My library: one line for lists.'''
    REQUIRES = ("mylib",)                 # distributions that must be installed; read without importing the file
    CLAIMED_RELATIVE_ERROR = 1e-5         # only for methods that are approximate by nature
    LIMITS = {"thread": "why"}            # optional relations between calls that the library does not satisfy

    xp = Namespace(mylib.numpy)           # the array-API names that cases call

    def prepare(operator, f, args, wrt): ...   # -> call(*args) -> native result; raise Unsupported(reason)
    def to_native(leaf): ...                   # a float or float64 array -> the library's type
    def to_numpy(leaf): ...                    # the library's type -> numpy
    def sync(result): ...                      # wait for the result
    def before_timing(): ...                   # load what only many calls need; not for `check --function`

`f(*args)` is the case on `xp`, and `f.case` the Case (with its name and C++ implementation). `args` are native inputs,
except Python ints, bools and strings, which are unchanged. `wrt` holds the positions of the active inputs. `prepare`
may trace, record and compile; it is timed separately from the call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import wraps
from types import ModuleType
from typing import Any, Literal

import numpy as np

from adbench.model import tree
from adbench.model.case import Case, function_of, reason_of
from adbench.model.errors import BadFile, Unsupported
from adbench.model.namespace import Namespace
from adbench.model.operator import OPERATORS as OPERATORS
from adbench.model.operator import OPTIONAL_RELATIONS, TRANSFORMS
from adbench.model.operator import WITH_VECTOR as WITH_VECTOR
from adbench.model.operator import Operator as Operator
from adbench.model.settings import FLOAT64, PROCESSOR

Call = Callable[..., Any]
HERE = ". Here: "
"""Separates a known fault from the result of this check, in the reason of a record."""


def of_active(f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]) -> Callable[[tuple[Any, ...]], Any]:
    """g(x) = f(*args) with the active arguments replaced by the tuple x."""

    def g(x: tuple[Any, ...]) -> Any:
        every = list(args)
        for position, arg in zip(wrt, x, strict=True):
            every[position] = arg
        return f(*every)

    return g


def on_active(operation: Callable[..., Any], operator: Operator, f: Callable[..., Any], wrt: tuple[int, ...]) -> Call:
    """call(*args) = operation(g, x), or operation(g, x, vector) for an operator that takes one.

    For libraries whose operators take a function of one nested argument; such a backend is a table of operations.
    """
    vectors = 1 if operator in WITH_VECTOR else 0

    def call(*args: Any) -> Any:
        inputs = args[: len(args) - vectors]
        return operation(of_active(f, inputs, wrt), tuple(inputs[i] for i in wrt), *args[len(inputs) :])

    return call


@dataclass(frozen=True)
class Trap:
    """A function at a point where some libraries are wrong: its family, itself in words, and its true gradient there.

    Empty where the case does not say it.
    """

    family: str
    function: str
    expected: str


def are_concerned(operators: tuple[str, ...], operator: str) -> bool:
    """Whether names or globs of operators include this one; none include all."""
    return not operators or any(fnmatchcase(operator, pattern) for pattern in operators)


@dataclass(frozen=True)
class KnownBug:
    """A known fault of a backend on a trap or another case.

    operators  names or globs of the operators that are wrong; none: all of them
    got        what the backend returns, in the words of its file: "nan", "0", "raises"
    thread     where it is discussed, as owner/repository#number; "as …" is a thread of another library, on the same bug
    device     the only one that has it; "": it was seen on the CPU, and others may have it
    """

    trap: str
    operators: tuple[str, ...]
    got: str
    reason: str
    thread: str
    device: str = ""

    def concerns(self, operator: str) -> bool:
        """Whether this operator is wrong."""
        return are_concerned(self.operators, operator)

    def was_seen_on(self, device: str) -> bool:
        """Whether the bug was seen on this device, or on one of several: "cpu,cuda"."""
        return (self.device or PROCESSOR) in device.split(",")

    def is_certain(self, operator: str, device: str = PROCESSOR) -> bool:
        """Whether a right result means that the entry is out of date: it names the operator in full, or no operator and
        this is the gradient, and the bug was seen on this device."""
        return operator in (self.operators or ("gradient",)) and self.was_seen_on(device)

    @property
    def text(self) -> str:
        """In one line: "nan: 0/0 (as owner/repository#7)"."""
        return reason_of(self.got, self.reason, self.thread)


def known_bug(bugs: Iterable[KnownBug], case: str, operator: str) -> KnownBug | None:
    """The known fault of an operator on a case: the first that names the operator, else that of the case as a whole."""
    here = [bug for bug in bugs if bug.trap == case and bug.concerns(operator)]
    return max(here, key=lambda bug: bool(bug.operators), default=None)


@dataclass(frozen=True)
class KnownBugs:
    """What is known of a run's backends on the traps.

    families   family -> how many traps there are; a family is a file: that of trap_kinks.py is "kinks"
    traps      checked traps, and traps with a bug
    backends   backend -> its bugs on traps, which may be none; one that is not installed has no key
    """

    families: dict[str, int] = field(default_factory=dict)
    traps: dict[str, Trap] = field(default_factory=dict)
    backends: dict[str, tuple[KnownBug, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Device:
    """The device that a backend computes on, instead of the processor: what its `use_device` returns.

    name         as the library calls it, such as "NVIDIA H100"
    sync         sync(result) waits until the result is computed; it takes the place of the module's
    peak_bytes   peak_bytes(call) calls call() and returns the bytes allocated on the device at its peak, above those
                 before it, without what was allocated earlier, as by compiling; None if the library has no such counter
    """

    name: str
    sync: Callable[[Any], Any]
    peak_bytes: Callable[[Callable[[], Any]], float] | None = None


def peak_without_reset(
    call: Callable[[], Any], in_use: Callable[[], float], peak: Callable[[], float], allocate: Callable[[int], Any]
) -> float:
    """The peak of one call, for `Device.peak_bytes`, by a counter that cannot be reset.

    Memory is first allocated up to the old peak, that of compiling for example, so that the call alone exceeds it.
    """
    filler = allocate(max(0, math.ceil(peak() - in_use())))
    before = in_use()
    result = call()
    above = peak() - before
    del result, filler
    return max(0.0, above)


@dataclass(frozen=True)
class Backend:
    """A loaded backend file, with defaults filled in."""

    name: str
    xp: Any
    prepare: Callable[[Operator, Callable[..., Any], tuple[Any, ...], tuple[int, ...]], Call]
    to_native: Callable[[Any], Any]
    to_numpy: Callable[[Any], Any]
    sync: Callable[[Any], Any] | None
    claimed_relative_error: float | None
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    sparse_jacobian: bool = False
    batched: bool = False
    build: Callable[..., Any] | None = None
    before_timing: Callable[[], Any] = lambda: None
    limits: Mapping[str, str] = field(default_factory=dict)
    nested: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    not_nested: str = ""
    device: Device | None = None
    rounds_inputs: bool = False
    """Its inputs have types below float64, so that numbers near the given ones are not exact."""

    precision: Literal["float64", "float32"] = "float64"
    dtype: str = FLOAT64
    """The type of the run: it computes in this one."""

    @property
    def single(self) -> bool:
        """Whether it computes in float32; inputs are then float32, and results may be."""
        return self.precision == "float32"

    @property
    def text(self) -> Literal["portable", "native"]:
        """ "portable" if it runs the source of cases, "native" if it has its own implementations."""
        return "native" if self.functions else "portable"

    def function(self, case: Case, names: tuple[str, ...], size: int | None = None) -> Callable[..., Any]:
        """The case on this backend, as a function of its inputs (at this size) in the order of `names`.

        Raises Unsupported if the backend has its own implementations, but none of this case.
        """
        own = [self.functions[text] for text in case.texts if text in self.functions]
        if self.functions and not own:
            raise Unsupported(f"{self.name} implements only {', '.join(sorted(self.functions))}")
        return function_of(replace(case, f=own[0] if own else case.f), names, self.xp, size)

    def waited(self, result: Any) -> Any:
        """The native result, once it has been computed."""
        if self.sync is not None:
            self.sync(result)
        return result

    def native_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The inputs in the library's types; static inputs are unchanged."""
        return tuple(
            tree.map_leaves(lambda leaf: leaf if tree.is_static(leaf) else self.to_native(leaf), arg) for arg in args
        )

    def numpy_result(self, result: Any) -> Any:
        """A native result as numpy arrays in the same structure; scipy sparse matrices are unchanged."""
        return tree.map_leaves(lambda leaf: leaf if hasattr(leaf, "tocsc") else self.to_numpy(leaf), result)


def from_module(name: str, module: ModuleType) -> Backend:
    """The backend that a module defines. Raises BadFile if `prepare` is missing or a part is not callable."""
    path = getattr(module, "__file__", name)
    if not callable(getattr(module, "prepare", None)):
        raise BadFile(f"{path}: prepare is missing; define prepare(operator, f, args, wrt)")
    for part in ("to_native", "to_numpy", "sync", "build", "before_timing", "use_device", "use_dtype"):
        if not callable(getattr(module, part, from_module)):
            raise BadFile(f"{path}: {part} is {getattr(module, part)!r}; define it as a function")
    if getattr(module, "DEVICES", ()) and not hasattr(module, "use_device"):
        raise BadFile(f"{path}: it has DEVICES, but use_device is missing; define use_device(name)")
    if getattr(module, "DTYPES", ()) and not hasattr(module, "use_dtype"):
        raise BadFile(f"{path}: it has DTYPES, but use_dtype is missing; define use_dtype(name)")
    precision: Literal["float64", "float32"] = getattr(module, "PRECISION", "float64")
    if precision not in ("float64", "float32"):
        raise BadFile(f'{path}: PRECISION is {precision!r}; write "float64" or "float32"')
    functions = getattr(module, "FUNCTIONS", {})
    if not isinstance(functions, dict) or not all(isinstance(key, str) and callable(f) for key, f in functions.items()):
        raise BadFile(f"{path}: FUNCTIONS must be a dict: case name -> function f(xp, **inputs)")
    limits = getattr(module, "LIMITS", {})
    if not isinstance(limits, dict) or not all(isinstance(reason, str) for reason in limits.values()):
        raise BadFile(f"{path}: LIMITS must be a dict: relation name -> reason")
    if unknown := sorted(map(str, limits.keys() - OPTIONAL_RELATIONS.keys())):
        raise BadFile(f"{path}: LIMITS has {', '.join(unknown)}; use {', '.join(OPTIONAL_RELATIONS)}")
    nested = getattr(module, "NESTED", {})
    is_table = isinstance(nested, dict) and all(key in TRANSFORMS.values() and callable(f) for key, f in nested.items())
    if not is_table and not isinstance(nested, str):
        raise BadFile(f"{path}: NESTED must be a dict with functions for 'jvp' and 'vjp', or a string with the reason")
    return Backend(
        name=name,
        xp=getattr(module, "xp", None) or Namespace(np),
        prepare=_of_table(name, module.prepare),
        to_native=getattr(module, "to_native", lambda leaf: leaf),
        to_numpy=getattr(module, "to_numpy", np.asarray),
        sync=getattr(module, "sync", None),
        claimed_relative_error=getattr(module, "CLAIMED_RELATIVE_ERROR", None),
        functions=functions,
        sparse_jacobian=bool(getattr(module, "SPARSE_JACOBIAN", False)),
        batched=bool(getattr(module, "BATCHED", False)),
        build=getattr(module, "build", None),
        before_timing=getattr(module, "before_timing", lambda: None),
        limits=limits,
        nested=nested if is_table else {},
        not_nested=nested if isinstance(nested, str) else "",
        precision=precision,
    )


def _of_table(name: str, prepare: Callable[..., Call]) -> Callable[..., Call]:
    """`prepare`, with an operator that a backend's table of operators lacks as Unsupported.

    `prepare` gets a new text. A KeyError counts only if it has this very text: a key that the backend's own code spells
    is another object, and its absence a fault.
    """

    @wraps(prepare)
    def prepared(operator: Operator, *given: Any) -> Call:
        asked = operator.encode().decode()
        try:
            return prepare(asked, *given)
        except KeyError as error:
            if not any(key is asked for key in error.args):
                raise
            raise Unsupported(f"{name} has no {operator}") from error

    return prepared
