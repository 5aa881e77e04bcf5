"""Relations between calls, which the entries of one gradient do not show; checked on every backend and case.

elsewhere    prepared at one point and called at another, the call is right there too
twice        called again after a call at other inputs, it returns the same: no stale state
untouched    the call leaves its inputs unchanged
overwritten  the call does not need the arrays that `prepare` saw: they may be overwritten
own          the next call leaves a result unchanged, and writing into a result does not spoil the next call
subsets      every subset of the active inputs gives the same entries
modes        <w, J v> = <Jᵀ w, v>, where the backend has both modes natively
NaN          a NaN in an input is a NaN in the value, or an exception, as on plain numpy

They are about the gradient; for a function whose value is an array about the Jacobian, or wᵀ J where the backend
lacks the Jacobian. Each is a function of a `Setting` that yields its faults in words; it does not raise for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from adbench.execution.operators.prepared_point import Point, point
from adbench.model import tree
from adbench.model.backend import Backend
from adbench.model.case import Case
from adbench.model.errors import Unsupported
from adbench.model.namespace import Namespace
from adbench.model.operator import Operator
from adbench.oracle import Reference, Row, cotangent, judge_operator

MOST_SUBSETS = 6


@dataclass(frozen=True)
class Setting:
    """A case at a size on a backend: everything that a relation needs."""

    backend: Backend
    case: Case
    size: int
    seed: int
    known: Reference
    operator: Operator = "gradient"

    @cached_property
    def at(self) -> Point:
        """The inputs."""
        return point(self.case, self.size, self.seed, single=self.backend.single)

    def inputs(self, seed: int | None = None) -> tuple[Any, ...]:
        """Fresh copies of the inputs in numpy: a case may hand out the same arrays each time."""
        args = self.at.args if seed is None else point(self.case, self.size, seed, single=self.backend.single).args
        return tuple(
            tree.map_leaves(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, a) for a in args
        )

    def native(self, seed: int | None = None) -> tuple[Any, ...]:
        """Inputs as the backend wants them."""
        return self.backend.native_inputs(self.inputs(seed))

    def prepare(self, operator: Operator, args: tuple[Any, ...], wrt: tuple[int, ...] | None = None) -> Any:
        """The backend's own operator, prepared at these native arguments."""
        f = self.backend.function(self.case, self.at.names, self.size)
        return self.backend.prepare(operator, f, args, self.at.wrt if wrt is None else wrt)

    def derivative(self, args: tuple[Any, ...], wrt: tuple[int, ...] | None = None) -> Any:
        """call(*inputs) -> what the relations are about, prepared at these native inputs."""
        if self.operator != "vjp":
            return self.prepare(self.operator, args, wrt)
        w = self.backend.native_inputs((cotangent(self.known.shape, self.seed),))
        call = self.prepare("vjp", (*args, *w), wrt)
        return lambda *inputs: call(*inputs, *w)

    def numpy(self, result: Any) -> Any:
        """A native result, waited for, copied into numpy arrays."""
        copied = lambda leaf: leaf.copy() if hasattr(leaf, "tocsc") else np.array(leaf)  # noqa: E731 - for one line
        return tree.map_leaves(copied, self.backend.numpy_result(self.backend.waited(result)))

    def faults(self, what: str, call: Any, native: tuple[Any, ...], known: Reference | None = None) -> Iterator[str]:
        """A sentence that begins with `what` if the call is wrong at these native inputs."""
        derivative, claim = self.numpy(call(*native)), self.backend.claimed_relative_error
        verdict = judge_operator(
            self.operator, derivative, known or self.known, claimed_relative_error=claim, single=self.at.single
        )
        if verdict.word == "wrong":
            yield f"{what}: {verdict.sentence}"


def violations(setting: Setting) -> list[str]:
    """Every relation that does not hold, as one sentence each. Raises Unsupported where there is no gradient at all."""
    setting = _about(setting)
    found = []
    for name, relation in RELATIONS.items():
        try:
            found += [f"{name}: {fault}" for fault in relation(setting)]
        except (Unsupported, NotImplementedError):
            continue  # a relation about an operator that the backend does not have
        except Exception as error:  # raised by the library in a situation that it ought to bear
            found.append(f"{name}: {type(error).__name__}: {str(error).partition(chr(10))[0]}")
    return found


def _about(setting: Setting) -> Setting:
    """The setting with the first operator that the backend has itself. Raises Unsupported where it has none."""
    wanted: tuple[Operator, ...] = ("jacobian", "vjp") if setting.known.shape else ("gradient",)
    for k, operator in enumerate(wanted):
        tried = replace(setting, operator=operator)
        try:
            tried.derivative(tried.native())
            break
        except (Unsupported, NotImplementedError):
            if k == len(wanted) - 1:
                raise
    return tried


def elsewhere(setting: Setting) -> Iterator[str]:
    """Prepared at other inputs of the same shapes, called at these."""
    if setting.case.prepared is not None:
        return  # the case is about that, and says where
    other = setting.native(setting.seed + 1)
    if _shapes(other) != _shapes(setting.native()):
        return
    call = setting.derivative(other)
    setting.numpy(call(*other))  # what records at its first call has then recorded there
    what = f"prepared at the inputs of seed {setting.seed + 1}, called at those of {setting.seed}"
    yield from setting.faults(what, call, setting.native())


def twice(setting: Setting) -> Iterator[str]:
    """Called here, there, and here again."""
    here, there = setting.native(), setting.native(setting.seed + 1)
    call = setting.derivative(here)
    setting.numpy(call(*here))
    if _shapes(here) == _shapes(there) and setting.case.prepared is None:
        setting.numpy(call(*there))
    yield from setting.faults("the last of three calls is wrong", call, here)


def untouched(setting: Setting) -> Iterator[str]:
    """The call leaves its arguments as they were."""
    native = setting.native()
    call = setting.derivative(native)
    before = setting.numpy(native)
    setting.numpy(call(*native))
    for name, old, new in zip(setting.at.names, before, setting.numpy(native), strict=True):
        same = [_same(a, b) for a, b in zip(tree.leaves(old), tree.leaves(new), strict=True)]
        if not all(same):
            yield f"the call changed its input {name}"


def overwritten(setting: Setting) -> Iterator[str]:
    """The numpy arrays that the example inputs were made from are overwritten after `prepare`."""
    examples = setting.inputs()
    call = setting.derivative(setting.backend.native_inputs(examples))
    for leaf in tree.leaves(examples):
        if isinstance(leaf, np.ndarray):
            leaf[...] = np.nan
    yield from setting.faults("it depends on arrays that prepare saw, which have changed since", call, setting.native())


def own(setting: Setting) -> Iterator[str]:
    """Results are the caller's."""
    native = setting.native()
    call = setting.derivative(native)
    other = setting.native(setting.seed + 1)
    first = call(*native)
    kept = setting.numpy(first)
    # At other inputs where they fit: the same numbers in the same buffer would not show.
    call(*(other if _shapes(other) == _shapes(native) else native))
    again = setting.numpy(first)
    pairs = zip(tree.leaves(kept), tree.leaves(again), strict=True)
    if not all(np.array_equal(_dense(a), _dense(b), equal_nan=True) for a, b in pairs):
        yield "a second call changes the result of the first"
    for leaf in tree.leaves(first):
        if isinstance(leaf, np.ndarray) and leaf.ndim and leaf.flags.writeable:
            leaf[...] = np.nan
    yield from setting.faults("a result that is written into spoils the next call", call, native)


def subsets(setting: Setting) -> Iterator[str]:
    """Any inputs can be active, the others are then constants."""
    wrt = setting.at.wrt
    for some in subsets_of(wrt):
        native, chosen = setting.native(), tuple(wrt.index(position) for position in some)
        what = f"in {', '.join(setting.at.names[k] for k in some)} alone"
        yield from setting.faults(what, setting.derivative(native, some), native, _restricted(setting.known, chosen))


def _same(a: Any, b: Any) -> bool:
    """Whether two leaves are equal, NaN to NaN; a text among the inputs is one too."""
    return np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind in "fc")


def subsets_of(wrt: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The proper subsets of the active inputs to check: smaller ones first, and not too many."""
    return [chosen for n in range(1, len(wrt)) for chosen in combinations(wrt, n)][:MOST_SUBSETS]


def modes(setting: Setting) -> Iterator[str]:
    """<w, J v> = <Jᵀ w, v>: forward against reverse."""
    args, v = setting.inputs(), setting.at.direction(1)
    w = cotangent(setting.known.shape, setting.seed, 0.75)
    forward_args = setting.backend.native_inputs((*args, v))
    reverse_args = setting.backend.native_inputs((*args, w))
    jv = setting.numpy(setting.prepare("jvp", forward_args)(*forward_args))
    wj = setting.numpy(setting.prepare("vjp", reverse_args)(*reverse_args))
    terms = [np.ravel(p * q) for p, q in zip(tree.leaves(wj), tree.leaves(v), strict=True)]
    products = np.concatenate(terms) if terms else np.zeros(0)
    left, right = float(np.sum(w * jv)), float(products.sum())
    bound = (1e-4 if setting.at.single else 1e-9) * float(np.abs(products).sum()) + 1e-300
    if not abs(left - right) <= max(bound, abs(right) * (setting.backend.claimed_relative_error or 0.0)):
        yield f"<w, J v> = {left!r}, but <Jᵀ w, v> = {right!r}"


def not_a_number(setting: Setting) -> Iterator[str]:
    """A NaN that plain numpy lets through to the value must not be swallowed."""
    args = list(setting.inputs())
    which = setting.at.wrt[0]
    leaves = iter([_with_nan(leaf) if k == 0 else leaf for k, leaf in enumerate(tree.leaves(args[which]))])
    args[which] = tree.map_leaves(lambda _: next(leaves), args[which])
    try:
        with np.errstate(all="ignore"):
            expected = bool(np.isnan(setting.at.text(Namespace(np), *args)).any())
    except Exception:  # numpy raises: then whatever the library does is no worse
        return
    if not expected:
        return
    native = setting.backend.native_inputs(tuple(args))
    try:
        value = setting.numpy(setting.prepare("value", native)(*native))
    except (Unsupported, NotImplementedError):
        raise
    except Exception:  # to raise is as honest as NaN
        return
    if not np.isnan(value).any():
        yield f"{setting.at.names[which]} holds a NaN and plain numpy gives NaN, but the value is {value.tolist()!r}"


RELATIONS: Mapping[str, Callable[[Setting], Iterator[str]]] = {
    "elsewhere": elsewhere,
    "twice": twice,
    "untouched": untouched,
    "overwritten": overwritten,
    "own": own,
    "subsets": subsets,
    "modes": modes,
    "NaN": not_a_number,
}


def _dense(leaf: Any) -> Any:
    return leaf.toarray() if hasattr(leaf, "tocsc") else leaf


def _with_nan(leaf: Any) -> Any:
    array = np.array(leaf, dtype=np.float64)
    if array.size:
        array.flat[0] = np.nan
    return array if array.ndim else float(array)


def _shapes(args: tuple[Any, ...]) -> list[Any]:
    """Shapes of the leaves, and the static leaves themselves: what `prepare` may rely on."""
    return [leaf if tree.is_static(leaf) else np.shape(leaf) for leaf in tree.leaves(args)]


def _restricted(known: Reference, chosen: tuple[int, ...]) -> Reference:
    """What is known, for some of the active inputs only; directions go over all of them and are left out."""

    def restricted(row: Row) -> Row:
        leaves = tuple(replace(e, position=chosen.index(e.position)) for e in row.leaves if e.position in chosen)
        constants = tuple((chosen.index(c[0]), *c[1:]) for c in row.constants if c[0] in chosen)
        return replace(row, count=len(chosen), leaves=leaves, directions=(), constants=constants)

    return known.mapped(restricted)
