"""Wrong backends: correct in one call, and wrong in state, in reading arrays, or for other vectors.

Each is `broken(prepare, args, wrt)`, which gets the correct `prepare(args, wrt)` and returns the wrong call.
"""

import copy
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from adbench.model.operator import OPERATORS, WITH_VECTOR, Operator
from tests.oracle import subjects as at
from tests.oracle.mutant import Mutant
from tests.oracle.planting import Broken, in_prepare

Call = Callable[..., Any]


def wide(rng: np.random.Generator) -> Any:
    return rng.uniform(0.4, 1.1, (2, 3))


SCALAR = at.case(lambda xp, x, y, W: xp.sum(W * xp.sin(x) * y) + xp.sum(x * x * y * y) / 2, x=wide, y=wide, W=wide)
ARRAY = replace(
    at.case(lambda xp, x, y, W: W * xp.sin(x) * y + x * x * y * y / 2, x=wide, y=wide, W=wide),
    operators=("value", "jacobian"),
)
OF_ARRAYS: tuple[Operator, ...] = ("value", "jacobian", "jvp", "vjp")
DERIVATIVES = OPERATORS[1:]
BY_PARTS = tuple(operator for operator in DERIVATIVES if operator != "jvp")
VECTORS = tuple(operator for operator in OPERATORS if operator in WITH_VECTOR)


def on_leaves(change: Callable[[Any], Any], result: Any) -> Any:
    """The result with every number or array changed."""
    if isinstance(result, tuple | list):
        return tuple(on_leaves(change, part) for part in result)
    return change(result)


def arrays(args: Any) -> Iterator[Any]:
    for arg in args:
        if isinstance(arg, tuple | list):
            yield from arrays(arg)
        elif isinstance(arg, np.ndarray):
            yield arg


# State


def frozen(prepare: Call, args: Any, wrt: Any) -> Call:
    result = prepare(args, wrt)(*args)
    return lambda *a: copy.deepcopy(result)


def keyed_by_identity(prepare: Call, args: Any, wrt: Any) -> Call:
    call, seen = prepare(args, wrt), {}

    def wrong(*a: Any) -> Any:
        key = tuple(map(id, arrays(a)))
        if key not in seen:
            seen[key] = a, call(*a)
        return copy.deepcopy(seen[key][1])

    return wrong


def kept_by(key: Callable[[Any], Any], *, for_all: bool = False) -> Broken:
    """Results kept by a part of the inputs, in each prepared operator or in one dictionary for all of them."""
    shared: dict[Any, Any] = {}

    def broken(prepare: Call, args: Any, wrt: Any) -> Call:
        call, kept = prepare(args, wrt), shared if for_all else {}

        def wrong(*a: Any) -> Any:
            found = (len(a), wrt, *(key(np.ravel(array)) for array in arrays(a)))
            if found not in kept:
                kept[found] = call(*a)
            return copy.deepcopy(kept[found])

        return wrong

    return broken


PARTS: dict[str, Callable[[Any], Any]] = {
    "the first entry": lambda x: x[0],
    "the last entry": lambda x: x[-1],
    "all entries but the last": lambda x: x[:-1].tobytes(),
    "all entries but the first": lambda x: x[1:].tobytes(),
    "every second entry": lambda x: x[::2].tobytes(),
    "the largest entry": lambda x: (x.max(), x.size),
    "three digits of the first entry": lambda x: f"{x[0]:.3g}",
}


def last_of(key: Callable[[Any], Any]) -> Broken:
    """The result of the call before, if a part of the inputs is the same."""

    def broken(prepare: Call, args: Any, wrt: Any) -> Call:
        call, last = prepare(args, wrt), []

        def wrong(*a: Any) -> Any:
            found = [key(np.ravel(array)) for array in arrays(a)]
            if not last or last[0] != found:
                last[:] = [found, call(*a)]
            return copy.deepcopy(last[1])

        return wrong

    return broken


def accumulating(prepare: Call, args: Any, wrt: Any) -> Call:
    call, calls = prepare(args, wrt), []

    def wrong(*a: Any) -> Any:
        calls.append(a)
        return on_leaves(lambda leaf: leaf * len(calls), call(*a))

    return wrong


def first_inputs(prepare: Call, args: Any, wrt: Any) -> Call:
    """Remembers an input of its first call."""
    call, first = prepare(args, wrt), []

    def wrong(*a: Any) -> Any:
        first.append(np.array(a[0]))
        return call(first[-2] if len(first) > 1 else a[0], *a[1:])

    return wrong


def last_prepared() -> Broken:
    """One program for all: `prepare` replaces it."""
    latest: list[Call] = []

    def broken(prepare: Call, args: Any, wrt: Any) -> Call:
        latest[:] = [prepare(args, wrt)]
        return lambda *a: latest[0](*a)

    return broken


def last_called() -> Broken:
    """Calls of one operator share state: a call after another one is wrong."""
    latest: list[Any] = []

    def broken(prepare: Call, args: Any, wrt: Any) -> Call:
        call, me = prepare(args, wrt), object()

        def wrong(*a: Any) -> Any:
            other = bool(latest) and latest[0] is not me
            known, latest[:] = any(one is me for one in seen), [me]
            seen.append(me)
            return on_leaves(lambda leaf: leaf * 1.25, call(*a)) if other and known else call(*a)

        seen: list[Any] = []
        return wrong

    return broken


def reading_examples(prepare: Call, args: Any, wrt: Any) -> Call:
    call = prepare(args, wrt)
    return lambda *a: call(*a[:2], a[2] + 0.0 * args[2], *a[3:])


def writing(prepare: Call, args: Any, wrt: Any) -> Call:
    call = prepare(args, wrt)

    def wrong(*a: Any) -> Any:
        result = copy.deepcopy(call(*a))
        a[2][0, 0] += 1e-3
        return result

    return wrong


def buffered(prepare: Call, args: Any, wrt: Any) -> Call:
    call, buffers = prepare(args, wrt), []

    def wrong(*a: Any) -> Any:
        result = on_leaves(np.array, call(*a))
        if not buffers:
            buffers.append(result)
        for old, new in zip(arrays(buffers), arrays((result,)), strict=True):
            old[...] = new
        return buffers[0]

    return wrong


MIXED: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "added": lambda a, b: (a + b, a + b),
    "lost": lambda a, b: (a, 0.0 * b),
    "of the last one": lambda a, b: (b, b),
}

# Active inputs


def in_order(prepare: Call, args: Any, wrt: Any) -> Call:
    return prepare(args, tuple(sorted(wrt)))


def only_all(prepare: Call, args: Any, wrt: Any) -> Call:
    call = prepare(args, wrt)
    return call if len(wrt) == 2 else lambda *a: on_leaves(lambda leaf: 2.0 * leaf, call(*a))


# Vectors


def with_vector(change: Callable[[Any, Any], Any]) -> Broken:
    """change(an array of the vector, the same of the example), before the call."""

    def changed(part: Any, example: Any) -> Any:
        if isinstance(part, tuple):
            return tuple(map(changed, part, example))
        return change(np.asarray(part), np.asarray(example)) if np.ndim(part) else float(change(part, example))

    def broken(prepare: Call, args: Any, wrt: Any) -> Call:
        call, example = prepare(args, wrt), copy.deepcopy(args[-1])
        return lambda *a: call(*a[:-1], changed(a[-1], example))

    return broken


VECTOR_FAULTS: dict[str, Callable[[Any, Any], Any]] = {
    "the vector of prepare": lambda v, example: example,
    "the vector in single precision": lambda v, example: np.float64(np.float32(v)),
    "the vector without its sign": lambda v, example: np.abs(v) * np.sign(example),
    "the vector times a power of two": lambda v, example: (
        np.sign(v) * np.abs(example) * 2.0 ** np.rint(np.log2(np.abs(v / example) + 1e-30))
    ),
    "NaN for a zero in the vector": lambda v, example: v * (v / np.where(v == 0, np.nan, v)),
    "a small vector is taken as none": lambda v, example: v * (np.abs(v) >= np.abs(example) / 1.5),
    "a vector with an offset": lambda v, example: v + 1e-6 * (v != example) * (np.abs(v) > 0),
}


def across(prepare: Call, args: Any, wrt: Any) -> Call:
    """Linear, correct along the standard vector, and wrong orthogonally to it."""
    call, v0 = prepare(args, wrt), flat(args[-1])
    p = np.arange(1.0, v0.size + 1)
    p -= (p @ v0) / (v0 @ v0) * v0
    return lambda *a: on_leaves(lambda leaf: leaf + 1e-3 * (p @ flat(a[-1])), call(*a))


def flat(vector: Any) -> Any:
    return np.concatenate([np.ravel(part) for part in (vector if isinstance(vector, tuple) else (vector,))])


# Memory layout of arrays


def with_first(change: Callable[[Any], Any]) -> Broken:
    """change(the first input), before the call."""

    def broken(prepare: Call, args: Any, wrt: Any) -> Call:
        call = prepare(args, wrt)
        return lambda x, *a: call(change(x), *a)

    return broken


def as_it_lies(array: Any) -> Any:
    return array.ravel("K").reshape(array.shape) if array.flags.f_contiguous else array


def without_strides(array: Any) -> Any:
    if array.flags.c_contiguous or array.flags.f_contiguous or array.base is None:
        return array
    return np.ravel(array.base)[: array.size].reshape(array.shape)


def in_place(array: Any) -> Any:
    array += 0.0
    return array


def one_of_each(prepare: Call, args: Any, wrt: Any) -> Call:
    """An array passed twice counts once."""
    call = prepare(args, wrt)

    def wrong(*a: Any) -> Any:
        seen: list[int] = []

        def once(leaf: Any) -> Any:
            if not np.ndim(leaf):
                return leaf
            seen.append(id(leaf))
            return leaf if seen.count(id(leaf)) == 1 else 0.0 * leaf

        return call(*on_leaves(once, a))

    return wrong


def one_object(change: Callable[[Any, Any], tuple[Any, Any]]) -> Broken:
    """change(first part, second part) of a result, if the first two inputs are one array: their derivatives are mixed
    up by the identity of the inputs."""

    def changed(result: Any, count: int) -> Any:
        if isinstance(result, tuple) and len(result) == count and count == 2 and np.ndim(result[0]):
            return change(*result)
        if isinstance(result, tuple):  # the value, rows of a Hessian
            return tuple(changed(part, count) for part in result)
        return result

    def broken(prepare: Call, args: Any, wrt: Any) -> Call:
        call = prepare(args, wrt)
        return lambda *a: changed(call(*a), len(wrt)) if a[0] is a[1] else call(*a)

    return broken


# NaN, exceptions, threads


def swallowing(prepare: Call, args: Any, wrt: Any) -> Call:
    call = prepare(args, wrt)
    return lambda *a: on_leaves(
        lambda leaf: np.nan_to_num(leaf) if np.ndim(leaf) else float(np.nan_to_num(leaf)), call(*a)
    )


def poisoned(prepare: Call, args: Any, wrt: Any) -> Call:
    call, raised = prepare(args, wrt), []

    def wrong(*a: Any) -> Any:
        try:
            result = call(*a)
        except Exception as error:
            raised.append(error)
            raise
        return on_leaves(lambda leaf: leaf * (1.0 + len(raised)), result)

    return wrong


def of_one_thread(prepare: Call, args: Any, wrt: Any) -> Call:
    call, state = prepare(args, wrt), threading.local()
    state.factor = 1.0
    return lambda *a: on_leaves(lambda leaf: leaf * getattr(state, "factor", 0.0), call(*a))


def mutants() -> Iterator[Mutant]:
    def planted(
        kind: str, name: str, relation: str, broken: Broken, of_scalars: Any, of_arrays: Any = OF_ARRAYS
    ) -> Iterator[Mutant]:
        for case, operators, what in ((SCALAR, of_scalars, ""), (ARRAY, of_arrays, " of an array")):
            for operator in operators:
                yield Mutant(
                    name=f"{name}{what}, {operator}", kind=kind, case=case, operator=operator, relation=relation,
                    plant=in_prepare(operator, broken),
                )  # fmt: skip

    vectors_of_arrays = tuple(operator for operator in OF_ARRAYS if operator in VECTORS)
    state, vector, layout = "state between calls", "other vector", "arrays in memory"
    yield from planted(state, "the result of prepare", "elsewhere", frozen, OPERATORS)
    yield from planted(state, "results by identity", "rewritten", keyed_by_identity, OPERATORS)
    yield from planted(state, "results added up", "twice", accumulating, OPERATORS)
    yield from planted(state, "an input of the call before", "twice", first_inputs, OPERATORS)
    yield from planted(state, "the last program", "interleaved", last_prepared(), DERIVATIVES, OF_ARRAYS[1:])
    yield from planted(state, "the last call", "interleaved", last_called(), OPERATORS)
    yield from planted(state, "an example by reference", "overwritten", reading_examples, OPERATORS)
    yield from planted(state, "an input that is written to", "untouched", writing, OPERATORS)
    yield from planted(state, "one buffer", "own", buffered, BY_PARTS)
    yield from planted("active inputs", "their order is ignored", "subsets", in_order, DERIVATIVES, OF_ARRAYS[1:])
    yield from planted("active inputs", "all or none", "subsets", only_all, DERIVATIVES, OF_ARRAYS[1:])
    for name, change in VECTOR_FAULTS.items():
        yield from planted(vector, name, "linear", with_vector(change), VECTORS, vectors_of_arrays)
    yield from planted(vector, "wrong across it", "modes", across, ("jvp",), vectors_of_arrays)
    yield from planted(vector, "wrong across it", "symmetric", across, ("hvp",), ())
    yield from planted(layout, "columns as rows", "Fortran order", with_first(as_it_lies), OPERATORS)
    yield from planted(layout, "gaps are read", "strided", with_first(without_strides), OPERATORS)
    yield from planted(layout, "written in place", "read-only", with_first(in_place), OPERATORS)
    yield from planted(layout, "an array twice", "same array", one_of_each, OPERATORS)
    for name, mixed in MIXED.items():
        yield from planted(layout, f"one array for two inputs, derivatives {name}", "same array", one_object(mixed),
                           tuple(o for o in BY_PARTS), ("jacobian", "vjp"))  # fmt: skip
    for name, key in PARTS.items():
        yield from planted(state, f"results by {name}", "one entry", kept_by(key), OPERATORS)
    yield from planted(state, "the last result by the first entry", "one entry", last_of(PARTS["the first entry"]),
                       OPERATORS)  # fmt: skip
    yield from planted(state, "the last result by all entries but the last", "one entry",
                       last_of(PARTS["all entries but the last"]), OPERATORS)  # fmt: skip
    for operator in ("gradient", "hvp"):
        yield from planted(state, "results of all programs by the first entry", "one entry",
                           kept_by(PARTS["the first entry"], for_all=True), (operator,), ())  # fmt: skip
    yield from planted("NaN swallowed", "as zero", "NaN", swallowing, OPERATORS)
    yield from planted("after an exception", "a factor", "exception", poisoned, OPERATORS)
    yield from planted("another thread", "zeros", "thread", of_one_thread, OPERATORS)


RELATIONS: list[Mutant] = [*mutants()]
