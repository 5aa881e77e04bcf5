"""The part of `adbench check --same-bits` that runs in a worker: a gradient again, in calls and batches.

Rows are the entries along the first axis. A function has a batch axis if its value for the first half of the rows is
the first half of its value, or if the values of both halves add up to its value, or have it as their mean.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Literal

import numpy as np

from adbench.catalog.ad_hoc import AdHoc
from adbench.execution.precision.called_kernel import CalledKernel, Numbers, with_outputs
from adbench.execution.precision.given import InGivenPrecision, active_of, native_leaf, placed, precision_of
from adbench.findings.variants.traced import traced_flat
from adbench.functions.libraries import LIBRARIES, compute_in_double
from adbench.functions.recognition import family_of_backend, library_of, takes_xp
from adbench.functions.user_arguments import arguments_of
from adbench.functions.user_function import told
from adbench.model.backend import Backend, of_active
from adbench.model.errors import Unsupported, UsageError, contained
from adbench.model.serialization import from_plain, to_plain
from adbench.oracle.evidence import DOUBLE, Precision, entry_name, lowest
from adbench.oracle.leaves import random_weights

CALLS = 5
PADDING = 3
BITS = 7
"""Of the random weights of an array's entries, which are numbers of every type."""

CLOSE = 1e-2
"""The relative distance up to which values of a batch and of its rows are the same but for rounding."""

Kind = Literal["rows", "sum", "mean"]
Repetition = tuple[str, str, "BitDifference | str | None"]
REDUCTION = ("sum", "mean", "dot", "mm", "mv", "prod", "norm", "softmax", "logsumexp", "var", "scatter", "index_put")
"""Parts of the names of operations that add numbers, in an order that a library chooses."""


@dataclass(frozen=True)
class BitDifference:
    """The first entry whose bits differ: its place, by how many ulp of its type, and both numbers."""

    place: str
    ulp: float
    first: float
    again: float
    type: str

    @staticmethod
    def between(
        names: Sequence[str], first: Sequence[Any], again: Sequence[Any], types: Sequence[Precision]
    ) -> BitDifference | None:
        """The first difference of two lists of arrays, which belong to these names; None if all bits agree."""
        for name, a, b, precision in zip(names, first, again, types, strict=True):
            differ = (a != b) & ~(np.isnan(a) & np.isnan(b)) | (np.signbit(a) != np.signbit(b))
            if np.any(differ):
                index = int(np.flatnonzero(differ)[0])
                x, y = float(np.ravel(a)[index]), float(np.ravel(b)[index])
                with np.errstate(all="ignore"):
                    ulp = float(np.abs(np.subtract(y, x)) / precision.ulp(x if np.isfinite(x) else 1.0))
                return BitDifference(entry_name(name, index, np.shape(a)), ulp, x, y, precision.name)
        return None


class Repeated:
    """A function at its arguments with a backend: the value, and the gradient of its weighted sum, again and again."""

    def __init__(self, named: AdHoc, size: int, backend: Backend, seed: int = 0) -> None:
        _use_defaults_of_users()
        f, (args, kwargs) = named.function(), named.arguments_by_size()(size)
        if takes_xp(f):
            compute_in_double()
        self.library = library_of(f, args, kwargs, backend.name)
        if takes_xp(f):
            f, self.library = partial(f, backend.xp), LIBRARIES[family_of_backend(backend.name) or "numpy"]
        if backend.device is not None:
            args, kwargs = placed(args, kwargs, self.library.name, backend)
        arguments = arguments_of(f, args, kwargs, named.wrt or None, double=False)
        self._backend = backend
        in_types = InGivenPrecision.of(backend, self.library, arguments, nullcontext)
        native = in_types.native_inputs(arguments.values)
        arguments, value = with_outputs(named.name, self.library.name, arguments, native)
        self._kernel = CalledKernel(arguments, replace(in_types, arguments=arguments))
        self.arguments, self.leaves = arguments, list(map(np.asarray, arguments.values))
        shape = np.shape(in_types.numpy_result(value))
        self.weights = random_weights(np.random.default_rng([seed, 0x5B]), shape, BITS) if shape else np.ones(())
        types = [precision_of(one) for one in active_of(arguments)]
        self.types = [lowest(DOUBLE, *types), *types]
        self.names = ["the value", *(f"the gradient by {name}" for name in arguments.active)]

    def run(self, leaves: Sequence[Any], weights: Any) -> Numbers:
        """The value and the gradient."""
        plain = [leaf if np.ndim(leaf) else float(leaf) for leaf in leaves]
        try:
            with contained(), np.errstate(all="ignore"):
                return self._kernel.run(plain, weights).numbers
        except Exception as error:
            raise UsageError(f"{self._backend.name} gives no gradient: {told(error)}") from error

    def native(self, weights: Any) -> list[Any]:
        """The arguments and the weights in the library's types."""
        leaves = self._kernel.backend.native_inputs(tuple(self.arguments.values))
        value = self.arguments.call(leaves)
        return [*leaves, native_leaf(self.library.name, weights, value)]

    def repetitions(self, first: Numbers) -> Iterator[Repetition]:
        """(kind, what was changed, the first difference, None, or why nothing can be compared)."""
        for number in range(2, CALLS + 1):
            again = self.run(self.leaves, self.weights)
            yield "repeat", f"call {number}", BitDifference.between(self.names, first, again, self.types)
        batch = self._batch(first)
        if batch is None:
            for kind in ("batch", "padding", "chunks"):
                yield kind, "", "the function has no batch axis"
            return
        yield from batch.repetitions(first)

    def _batch(self, first: Numbers) -> RowBatch | None:
        shape, active = np.shape(first[0]), [self.arguments.names.index(name) for name in self.arguments.active]
        lengths = [len(leaf) if leaf.ndim else 0 for leaf in self.leaves]
        for count in dict.fromkeys(length for length in lengths if length > 1):
            every = tuple(k for k, length in enumerate(lengths) if length == count)
            for leaves in dict.fromkeys((every, every[:1])):
                kinds: tuple[Kind, ...] = ("rows",) if shape else ("sum", "mean")
                for kind in kinds if not shape or shape[0] == count else ():
                    batch = RowBatch(self, count, leaves, [active.index(k) for k in leaves if k in active], kind)
                    if batch.is_one(first):
                        return batch
        return None


@dataclass(frozen=True)
class RowBatch:
    """The rows of a function.

    count     of rows; leaves: the positions of arguments that have rows; of_rows: the positions of their gradients
    kind      whether the value has rows, or is the sum or the mean over rows
    """

    f: Repeated
    count: int
    leaves: tuple[int, ...]
    of_rows: Sequence[int]
    kind: Kind

    def run(self, rows: Any, weights: Any = None) -> Numbers:
        """The value and the gradient for these rows."""
        leaves = [leaf[rows] if k in self.leaves else leaf for k, leaf in enumerate(self.f.leaves)]
        if weights is None:
            share = len(rows) / self.count if self.kind == "mean" else 1.0
            weights = self.f.weights[rows] if self.kind == "rows" else np.asarray(share)
        return self.f.run(leaves, weights)

    def is_one(self, first: Numbers) -> bool:
        """Whether the values of halves and of the whole agree but for rounding."""
        half = self.count // 2
        if self.kind == "mean" and self.count % 2:
            return False
        try:
            parts = [self.run(np.arange(self.count)[part])[0] for part in (slice(half), slice(half, None))]
        except UsageError:  # these arguments belong together in another way
            return False
        joined = np.concatenate(parts) if self.kind == "rows" else sum(parts) / (2.0 if self.kind == "mean" else 1.0)
        size = float(np.max(np.abs(first[0]), initial=0.0))
        return np.shape(joined) == np.shape(first[0]) and bool(np.all(np.abs(joined - first[0]) <= CLOSE * size))

    def repetitions(self, first: Numbers) -> Iterator[Repetition]:
        """The same rows in other batches, with padding, and the sum of two halves."""
        half, every = self.count // 2, np.arange(self.count)
        for count in dict.fromkeys((1, half)) if self.kind != "mean" else (half,):
            again = self.run(every[:count])
            yield "batch", f"a batch of {count} of {self.count} rows", self._rows(first, again, count)
        if self.kind == "mean":
            yield "padding", "", "the value is a mean, which more rows change"
        else:
            weights, has_rows = self.f.weights, self.kind == "rows"
            if has_rows:  # those of the padding are zero, so that gradients that all rows share stay the same
                weights = np.concatenate([weights, np.zeros((PADDING, *weights.shape[1:]))])
            again = self.run(np.concatenate([every, np.zeros(PADDING, dtype=int)]), weights)
            yield "padding", f"{PADDING} more rows", self._rows(first, again, self.count, shared=has_rows)
        yield "chunks", "the sum of two halves", self._chunks(first, [self.run(every[:half]), self.run(every[half:])])

    def _rows(self, first: Numbers, again: Numbers, count: int, *, shared: bool = False) -> BitDifference | str | None:
        """The first difference among results of the first rows; shared: and of gradients that all rows share."""
        chosen = [0] if self.kind == "rows" else []
        chosen += [1 + k for k in range(len(first) - 1) if shared or k in self.of_rows]
        if not chosen:
            return "no result belongs to one row"

        def of_rows(part: Numbers) -> list[Any]:
            return [part[k][:count] if k == 0 or k - 1 in self.of_rows else part[k] for k in chosen]

        return self._between(chosen, of_rows(first), of_rows(again))

    def _chunks(self, first: Numbers, halves: Sequence[Numbers]) -> BitDifference | str | None:
        """The first difference of sums over all rows from the sum of both halves."""
        chosen = [1 + k for k in range(len(first) - 1) if k not in self.of_rows] + ([0] if self.kind == "sum" else [])
        if not chosen:
            return "no result is a sum over rows"
        sums = [self.f.types[k].rounded(halves[0][k] + halves[1][k]) for k in chosen]
        return self._between(chosen, [first[k] for k in chosen], sums)

    def _between(self, chosen: Sequence[int], first: Sequence[Any], again: Sequence[Any]) -> BitDifference | None:
        names, types = [self.f.names[k] for k in chosen], [self.f.types[k] for k in chosen]
        return BitDifference.between(names, first, again, types)


def repeated(backend: Backend, request: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of the first call, and with `all` its repetitions; `named`, `size` and `seed` say of what."""
    f = _requested(backend, request)
    first = f.run(f.leaves, f.weights)
    found = [to_plain(one) for one in f.repetitions(first)] if request["all"] else []
    units = [one.name for one in f.types]
    return {"numbers": first, "names": f.names, "types": units, "found": found}


def reduction(backend: Backend, request: Mapping[str, Any]) -> str:
    """The last operation that adds numbers on the way to the result `which`; "" if the program is not known."""
    f, which, family = _requested(backend, request), request["which"], family_of_backend(backend.name)
    if family not in ("jax", "torch") or "vjp" not in backend.nested:
        return ""
    active = tuple(f.arguments.names.index(name) for name in f.arguments.active)
    native = f.native(f.weights)

    def flat(*numbers: Any) -> Any:
        *leaves, w = numbers
        if which == 0:
            return f.arguments.call(leaves)
        g = of_active(lambda *every: f.arguments.call(every), tuple(leaves), active)
        return backend.nested["vjp"](g, tuple(leaves[k] for k in active), w)[which - 1]

    try:
        program = traced_flat(family, flat, native)
    except Unsupported:
        return ""
    needed = program.needed(len(program.operations) - 1) if program.operations else []
    adding = [one for one in needed if any(part in one.words.partition("(")[0] for part in REDUCTION)]
    return str(adding[-1]) if adding else ""


@cache
def _use_defaults_of_users() -> None:
    """Undo what backends do for a worker's whole life: compute in float64 by default. Once: a user's module may too."""
    if torch := sys.modules.get("torch"):
        torch.set_default_dtype(torch.float32)
    if jax := sys.modules.get("jax"):
        jax.config.update("jax_enable_x64", os.environ.get("JAX_ENABLE_X64", "0").lower() in ("1", "true"))


def _requested(backend: Backend, request: Mapping[str, Any]) -> Repeated:
    return Repeated(from_plain(request["named"], AdHoc), request["size"], backend, request["seed"])
