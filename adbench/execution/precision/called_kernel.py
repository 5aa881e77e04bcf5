"""A function with its arguments in their own types, called for its value and its gradient.

Arrays of inputs lie in memory between NaN, so that a kernel that reads beyond an array, for want of a mask, shows it.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adbench.catalog.discovery import load
from adbench.catalog.selection import resolve
from adbench.execution.precision.given import (
    InGivenPrecision,
    Settings,
    in_numpy,
    native_leaf,
    precision_of,
    tensor_like,
)
from adbench.functions.libraries import LIBRARIES, Library, double_precision
from adbench.functions.outputs import outputs_of
from adbench.functions.user_arguments import Arguments, Leaf
from adbench.functions.user_function import told
from adbench.model.backend import from_module
from adbench.model.errors import UsageError, contained
from adbench.oracle.reference import UNIT_ROUNDOFF

Numbers = tuple[NDArray[np.float64], ...]
"""The value, then the gradient by each active leaf."""

MARGIN = 64
"""NaN before and behind an array; a multiple of what kernels expect of addresses."""


@dataclass(frozen=True)
class Ran:
    """What one call gave: its native results and arguments, and the results in numpy as they were then."""

    results: tuple[Any, ...]
    arguments: tuple[Any, ...]
    numbers: Numbers

    @property
    def now(self) -> Numbers:
        """The results in numpy as they are now, after other calls."""
        return tuple(in_numpy(part).astype(np.float64, copy=True) for part in self.results)


@dataclass(frozen=True)
class CalledKernel:
    """A kernel at its arguments, which are in their own types; `backend` runs it."""

    arguments: Arguments
    backend: InGivenPrecision

    @staticmethod
    def of(library: Library, arguments: Arguments, settings: Settings) -> CalledKernel:
        """A function of this library at these arguments, with these settings of jax and torch."""
        source = resolve(backends=[library.backend]).catalog.backends[library.backend]
        backend = from_module(source.name, load(source))
        return CalledKernel(arguments, InGivenPrecision.of(backend, library, arguments, settings))

    @property
    def in_float64(self) -> CalledKernel:
        """The same on float64 arrays, on the same device."""

        def widened(given: Any) -> Any:
            if not precision_of(given).unit > UNIT_ROUNDOFF:
                return given
            return given.double() if hasattr(given, "double") else given.astype(np.float64)

        with double_precision():
            arguments = replace(self.arguments, given=tuple(map(widened, self.arguments.given)))
        return CalledKernel.of(LIBRARIES[self.backend.library], arguments, double_precision)

    @property
    def wrt(self) -> tuple[int, ...]:
        """The positions of the active leaves."""
        return tuple(map(self.arguments.names.index, self.arguments.active))

    def run(self, leaves: Sequence[Leaf], weights: Any, strided: bool = False) -> Ran:
        """The value, and the gradient of its sum with these weights by every active leaf."""
        library, call = self.backend.library, self.arguments.call
        pairs = zip(leaves, self.arguments.given, strict=True)
        native = tuple(guarded(library, *pair, strided) for pair in pairs)

        def f(*leaves: Any) -> Any:
            return call(leaves)

        value = self.backend.prepare("value", f, native, self.wrt)(*native)
        w = native_leaf(library, weights, value)
        results = value, *self.backend.prepare("vjp", f, (*native, w), self.wrt)(*native, w)
        made = Ran(results, native, ())
        return replace(made, numbers=made.now)


def with_outputs(name: str, library: str, arguments: Arguments, native: Sequence[Any]) -> tuple[Arguments, Any]:
    """The arguments with the results of the function that count, as a call shows them; and the value of this call.

    Raises UsageError if the function raises.
    """
    try:
        with contained(), np.errstate(all="ignore"):
            value = arguments.call(native)
    except Exception as error:
        raise UsageError(f"{name} raises {told(error)}") from error
    outputs = outputs_of(value, None, library, name)
    return (arguments, value) if outputs is None else (replace(arguments, outputs=outputs), outputs.of(value))


def guarded(library: str, value: Leaf, given: Any, strided: bool) -> Any:
    """The leaf like the given one, between NaN in memory; strided: every other number of its last axis is NaN too."""
    if library != "torch" or not np.ndim(value) or not hasattr(given, "stride"):
        return native_leaf(library, value, given)
    torch = importlib.import_module("torch")
    source = torch.from_numpy(np.asarray(value))
    if strided:
        sizes = [*source.shape[:-1], 2 * source.shape[-1]]
        given = torch.empty(sizes, dtype=given.dtype, device=given.device)[..., ::2]
    return tensor_like(given, source, margin=MARGIN)
