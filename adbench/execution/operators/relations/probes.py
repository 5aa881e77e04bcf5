"""Cheap relations: a few calls of one prepared operator each, without preparing again.

Each is a function of a `PreparedSubject` that yields its faults in words, or raises NotApplicable with the reason. It
compares with the operator's first result here, by equal numbers or else by the oracle's verdict.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from threading import Thread
from time import perf_counter
from typing import Any

import numpy as np

from adbench.execution.operators.relations.consistency import AllowedDifference, difference
from adbench.execution.operators.relations.neighbours import MOST_SECONDS, Neighbour
from adbench.execution.operators.relations.setting import (
    Args,
    NotApplicable,
    PreparedSubject,
    combined,
)
from adbench.model import tree
from adbench.model.errors import Unsupported
from adbench.model.namespace import Namespace
from adbench.model.operator import definition

NUDGE = 2.0**-10
FACTORS = (-1.7, 0.003, 1_000_003.0)
FEWEST_ENTRIES = 2  # to change, however long a call takes


def twice(subject: PreparedSubject) -> Iterator[str]:
    """A call there, then here again."""
    here = subject.native()
    subject.result(subject.somewhere())
    yield from subject.faults("called again", here)
    yield from subject.faults("called with the same arguments again", here)


def rewritten(subject: PreparedSubject) -> Iterator[str]:
    """Overwrite the arrays of a call elsewhere with the numbers here, and call again."""
    arrays, here = subject.there(), subject.native()
    subject.result(arrays)
    written = 0

    def overwritten(old: Any, new: Any) -> Any:
        nonlocal written
        if tree.is_static(old) or not np.ndim(old) or not _write(old, new):
            return new
        written += 1
        return old

    args = tuple(combined(overwritten, old, new) for old, new in zip(arrays, here, strict=True))
    if not written:
        raise NotApplicable("no argument is a writable array")
    yield from subject.faults("after its arrays were overwritten", args)


def untouched(subject: PreparedSubject) -> Iterator[str]:
    """A call leaves its arguments unchanged."""
    native = subject.native()
    before = subject.setting.numpy(native)
    subject.result(native)
    yield from _changed(subject, before, subject.setting.numpy(native), "the call changes")


def own(subject: PreparedSubject) -> Iterator[str]:
    """A result belongs to the caller, who may keep it and write into it."""
    first = subject.call(*subject.native())
    kept = subject.setting.numpy(first)
    subject.call(*subject.somewhere())  # elsewhere, because equal numbers in the same buffer would hide the fault
    if difference(subject.setting.numpy(first), kept, AllowedDifference(0.0)):
        yield "a second call changes the result of the first"
    _write_into(first)
    yield from subject.faults("after a result was written into", subject.native())


def apart(subject: PreparedSubject) -> Iterator[str]:
    """Writing into a result leaves the arguments unchanged."""
    native = subject.native()
    result = subject.call(*native)
    before = subject.setting.numpy(native)
    if not _write_into(result):
        raise NotApplicable("the result is not a writable array")
    yield from _changed(subject, before, subject.setting.numpy(native), "writing into the result changes")


def linear(subject: PreparedSubject) -> Iterator[str]:
    """Linearity in the vector: zeros, negative numbers, sums, and factors other than powers of two."""
    if not definition(subject.operator).vector:
        raise NotApplicable("the operator takes no vector")
    if not subject.is_right:
        raise NotApplicable("the operator itself is wrong")
    if subject.setting.has_kink:
        raise NotApplicable("the case has a kink here, where no derivative is linear")
    (v,), (u,) = subject.setting.at.vector(subject.operator), subject.setting.general(subject.operator)
    count = itertools.count()
    even = tree.like(v, lambda leaf: leaf * _alternating(leaf, count))
    odd = combined(lambda whole, part: whole - part, v, even)

    def along(vector: Any) -> Any:
        return subject.result(subject.with_vector((vector,)))

    def times(factor: float, result: Any) -> Any:
        return tree.map_leaves(lambda leaf: factor * leaf, result)

    def plus(a: Any, b: Any) -> Any:
        return combined(lambda p, q: p + q, a, b)

    of_u = along(u)
    factors = [k for k in FACTORS if k * k < subject.setting.at.arithmetic.largest]  # so that no product overflows
    zeros = tree.map_leaves(np.zeros_like, subject.base)
    with np.errstate(all="ignore"):
        checks = (
            ("a vector of zeros", 1.0, along(tree.like(v, np.zeros_like)), zeros, (subject.base,)),
            *((f"{k} times a vector", k, along(_scaled(k, u)), times(k, of_u), (times(k, of_u),)) for k in factors),
            ("the sum of two vectors", 1.0, along(plus(v, u)), plus(subject.base, of_u), (subject.base, of_u)),
            ("a vector in two parts with zeros", 1.0, plus(*(parts := (along(even), along(odd)))), subject.base, parts),
        )
        noise = subject.setting.noise(subject.operator)
        for what, factor, got, expected, terms in checks:
            sizes = tree.map_leaves(np.abs, terms[0])
            for term in terms[1:]:
                sizes = combined(lambda size, part: size + np.abs(part), sizes, term)
            # If the derivative is not finite, neither is 0 times it.
            got = combined(lambda p, q, size: np.where(np.isfinite(size), p, q), got, expected, sizes)
            # A true zero may be a rounding error, which grows with the vector.
            if differs := difference(got, expected, replace(noise, floor=noise.floor * max(1.0, abs(factor))), sizes):
                yield f"{what}: {differs}"


def fortran_order(subject: PreparedSubject) -> Iterator[str]:
    """Arrays in Fortran order."""
    if not any(min(np.shape(leaf), default=0) > 1 and np.ndim(leaf) > 1 for leaf in tree.leaves(subject.args)):
        raise NotApplicable("no argument is a matrix")
    yield from _laid("arrays in Fortran order", subject, np.asfortranarray)


def strided(subject: PreparedSubject) -> Iterator[str]:
    """Every second number of a longer array."""

    def apart(leaf: Any) -> Any:
        longer = np.full((*leaf.shape[:-1], 2 * leaf.shape[-1]), np.nan)
        longer[..., ::2] = leaf
        return longer[..., ::2]

    yield from _laid("arrays with gaps between their numbers", subject, apart)
    yield from _laid("reversed arrays", subject, lambda leaf: np.array(leaf[..., ::-1], order="C")[..., ::-1])


def read_only(subject: PreparedSubject) -> Iterator[str]:
    """Read-only arrays."""

    def locked(leaf: Any) -> Any:
        leaf = leaf.copy()
        leaf.flags.writeable = False
        return leaf

    yield from _laid("read-only arrays", subject, locked)


def same_array(subject: PreparedSubject) -> Iterator[str]:
    """One array passed twice, compared with two equal arrays."""
    leaves = tree.leaves(subject.args)
    refused: Exception | None = None
    for source, target in _equal_pairs(subject, leaves):
        numbers = [leaves[source] if k == target else leaf for k, leaf in enumerate(leaves)]
        try:
            expected = subject.result(subject.setting.native(tree.filled(subject.args, numbers)))
        except Exception as error:  # these inputs are not the case's
            refused = error
            continue
        native = tree.leaves(subject.native())
        if len({str(getattr(native[k], "dtype", "")) for k in (source, target)}) > 1:
            continue
        native[target] = native[source]
        got = subject.result(tree.filled(subject.args, native))
        if differs := difference(got, expected, subject.setting.noise(subject.operator)):
            yield f"one array passed twice: {differs}"
            return
    if refused:
        raise NotApplicable(f"with two equal inputs the call raises {type(refused).__name__}") from refused


def _equal_pairs(subject: PreparedSubject, leaves: Sequence[Any]) -> list[tuple[int, int]]:
    """Arguments of one shape, which may be the same array: two active inputs, and an input with the last argument."""
    places = [k for k, leaf in enumerate(leaves) if tree.is_active(leaf)]
    pairs = [(i, j) for i, j in itertools.combinations(places, 2) if np.shape(leaves[i]) == np.shape(leaves[j])]
    if not pairs:
        raise NotApplicable("no two arguments have one shape")
    ends = np.cumsum([len(tree.leaves(arg)) for arg in subject.setting.at.args])
    is_active = [int(np.searchsorted(ends, k, side="right")) in subject.wrt for k in range(len(leaves))]
    of_inputs = [(i, j) for i, j in pairs if is_active[i] and is_active[j]][:1]
    last = min(pairs, key=lambda pair: (-pair[1], pair[0]))  # v = x if there is a v: x is unchanged
    return list(dict.fromkeys([*of_inputs, last]))


def one_entry(subject: PreparedSubject) -> Iterator[str]:
    """Calls whose inputs differ from the last ones in one entry, compared with differences of the case's values.

    They must agree here. A fault is the result of the call before, or one that is right where all entries differ.
    """
    setting, operator = subject.setting, subject.operator
    if not subject.is_right:
        raise NotApplicable("the operator itself is wrong")
    near, begun = setting.neighbours, perf_counter()
    noise = setting.noise(operator)
    allowed = 2 * (noise.relative + noise.share) if setting.at.types else 10 * noise.relative
    tolerance = max(allowed, 2 * (setting.backend.claimed_relative_error or 0.0))

    def result(there: Neighbour) -> Any:
        return subject.result(setting.native(near.args(operator, there)))

    def fault(got: Any, there: Neighbour) -> str:
        return near.disagreement(operator, got, there, tolerance)

    here = result(near.here)
    if not near.here.decides(operator) or fault(here, near.here):
        raise NotApplicable("differences of the case's values are too inaccurate")
    for number, there in enumerate(near.others):
        if number >= FEWEST_ENTRIES and perf_counter() - begun > MOST_SECONDS * setting.patience:
            break
        if there.decides(operator) and (differs := fault(got := result(there), there)):
            again = near.nudged(there)
            is_kept = not difference(got, here, AllowedDifference(0.0))
            if is_kept or (again.decides(operator) and not fault(result(again), again)):
                what = "the result is that of the inputs before: " if is_kept else ""
                yield f"after a call with another {there.what} and the same numbers elsewhere: {what}{differs}"
                return
        if definition(operator).is_first_derivative:  # so that each call follows one that differs in one entry
            result(near.here)
    if differs := difference(result(near.here), here, setting.noise(operator)):
        yield f"after calls that differ in one entry: {differs}"


def not_a_number(subject: PreparedSubject) -> Iterator[str]:
    """A NaN that reaches the value on plain numpy must appear in every result that depends on that input."""
    setting = subject.setting
    which = setting.at.wrt[0]

    def moved(change: Callable[[float], float]) -> Args:
        args = list(tree.copied(setting.at.args))
        leaves = tree.leaves(args[which])
        first = np.array(leaves[0], dtype=np.float64)
        if first.size:
            first.flat[0] = change(float(first.flat[0]))
        args[which] = tree.filled(args[which], [first if first.ndim else float(first), *leaves[1:]])
        return (*args, *setting.at.vector(subject.operator))

    with_nan = moved(lambda _: np.nan)
    if not _is_nan_on_numpy(subject, with_nan[: len(setting.at.args)]):
        raise NotApplicable("plain numpy gives no NaN for a NaN in the first input")
    if 0 not in definition(subject.operator).derivatives:
        # A derivative that is the same at every input need not read the input. Compare two points on one side, because
        # the inputs themselves may be where a branch of the case ends.
        try:
            near, far = (subject.result(setting.native(moved(partial(_nudged, k)))) for k in (1, 2))
        except Exception as error:
            raise NotApplicable(f"next to the inputs the call raises {type(error).__name__}") from error
        if not difference(near, far, setting.noise(subject.operator)):
            raise NotApplicable("the derivative does not depend on the first input")
    try:
        result = subject.result(setting.native(with_nan))
    except (Unsupported, NotImplementedError):
        raise
    except Exception:  # an exception is as good as NaN
        return
    numbers = tree.leaves(result[0] if definition(subject.operator).result == "pair" else result)
    if not any(np.isnan(leaf.data if hasattr(leaf, "tocsc") else leaf).any() for leaf in numbers):
        name = setting.at.names[which]
        yield f"{name} holds a NaN and plain numpy gives NaN, but the result has none: {_shown(numbers)}"


def another_thread(subject: PreparedSubject) -> Iterator[str]:
    """A call from another thread than the preparing one."""
    outcomes: list[Any] = []

    def work() -> None:
        try:
            outcomes.extend(subject.faults("called from another thread", subject.native()))
        except Exception as error:  # raised again in the calling thread
            outcomes.append(error)

    thread = Thread(target=work)
    thread.start()
    thread.join()
    for each in outcomes:
        if isinstance(each, Exception):
            raise each
        yield each


def after_an_exception(subject: PreparedSubject) -> Iterator[str]:
    """A failed call has no after-effects: raised inside the case, or for an argument that is not a number."""
    native = subject.native()
    broken = list(native)
    broken[subject.wrt[0]] = None
    for interrupted, args in ((True, native), (False, tuple(broken))):
        subject.interruption.is_on = interrupted
        try:
            subject.call(*args)
        except Exception:  # whatever the library raises
            pass
        finally:
            subject.interruption.is_on = False
        what = "an exception in the function" if interrupted else "a call with None instead of an input"
        yield from subject.faults(f"after {what}", native)


CHEAP: Mapping[str, Callable[[PreparedSubject], Iterator[str]]] = {
    "twice": twice,
    "rewritten": rewritten,
    "untouched": untouched,
    "own": own,
    "apart": apart,
    "linear": linear,
    "Fortran order": fortran_order,
    "strided": strided,
    "read-only": read_only,
    "same array": same_array,
    "one entry": one_entry,
    "NaN": not_a_number,
    "thread": another_thread,
    "exception": after_an_exception,
}
"""Relations that need a few calls of one prepared operator."""


def _write(array: Any, numbers: Any) -> bool:
    """Overwrite a native array; returns whether that worked."""
    try:
        array[...] = numbers
    except Exception:  # an immutable array, or a read-only one
        return False
    return True


def _write_into(result: Any) -> bool:
    """Overwrite the arrays of a native result; returns whether there are any."""
    leaves = [leaf for leaf in tree.leaves(result) if not hasattr(leaf, "tocsc") and np.ndim(leaf)]
    return sum(_write(leaf, np.nan) for leaf in leaves) > 0  # overwrite all, without short-circuiting


def _changed(subject: PreparedSubject, before: Args, after: Args, what: str) -> Iterator[str]:
    names = (*subject.setting.at.names, "vector")
    for name, old, new in zip(names, before, after, strict=False):
        if not tree.are_equal(old, new):
            yield f"{what} its argument {name}"


def _laid(what: str, subject: PreparedSubject, lay: Callable[[Any], Any]) -> Iterator[str]:
    """Faults of a call with the arguments here in another memory layout."""
    leaves = [isinstance(leaf, np.ndarray) and leaf.ndim > 0 for leaf in tree.leaves(subject.args)]
    if not any(leaves):
        raise NotApplicable("no argument is an array")

    def laid(leaf: Any) -> Any:
        return lay(leaf) if isinstance(leaf, np.ndarray) and leaf.ndim else leaf

    args = tuple(tree.map_leaves(laid, arg) for arg in subject.args)
    yield from subject.faults(what, subject.setting.backend.native_inputs(args))


def _alternating(leaf: Any, count: Iterator[int]) -> Any:
    """1 for every second entry, counted across leaves."""
    return np.reshape([float(next(count) % 2 == 0) for _ in range(leaf.size)], leaf.shape)


def _scaled(factor: float, vector: Any) -> Any:
    return tree.like(vector, lambda leaf: factor * leaf)


def _nudged(steps: int, x: float) -> float:
    return x + steps * NUDGE * (abs(x) or 1.0)


def _is_nan_on_numpy(subject: PreparedSubject, args: Args) -> bool:
    """Whether the value on plain numpy has a NaN there."""
    try:
        with np.errstate(all="ignore"):
            return bool(np.isnan(subject.setting.at.text(Namespace(np), *args)).any())
    except Exception:  # numpy raises, so the library may do anything
        return False


def _shown(numbers: list[Any]) -> str:
    first = numbers[0].data if hasattr(numbers[0], "tocsc") else numbers[0]
    return f"{np.ravel(first)[:3].tolist()!r}"
