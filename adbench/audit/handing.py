"""Wraps the entry points of AD libraries, so that a gradient can be spoiled on its way to the test that asked for it.

A call counts if it is the outermost one, and if the first caller outside the AD libraries is a file of the suite: a
library under test that computes gradients for its own use gets right ones.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import numpy as np
import optree

from adbench.optional import AfterImport

from .entry_points import ACCUMULATED, CHECKERS, ENTRY_POINTS, FUNCTION, JAX, PULLBACK, Where
from .spoils import Spoil, floating

PACKAGES = ("jax", "jaxlib", "torch", "autograd", "equinox", "flax", "chex")
"""Packages whose frames stand between a test and a gradient."""


@dataclass
class TestRun:
    """What one run of a test was handed.

    spoil      the error to put in; None for none
    pattern    which calls are spoiled: those with an even number of ones in the binary digits of their number, or
               the others. Such a pattern never repeats, so two gradients that a test compares are not spoiled alike
    calls      gradients handed out
    changed    whether the error changed a number
    traced     whether a gradient had no numbers yet, in a function that jax compiles
    first      digest of the first gradient before it is spoiled; None if it has no numbers yet, under a trace
    """

    __test__ = False  # for pytest

    spoil: Spoil | None = None
    pattern: int = 0
    calls: int = 0
    changed: bool = False
    traced: bool = False
    first: str | None = None

    @property
    def takes_this_call(self) -> bool:
        """Whether the call that begins is to be spoiled."""
        return self.spoil is not None and (self.calls.bit_count() + self.pattern) % 2 == 0


@dataclass
class Handing:
    """The wrapped entry points, and the run of a test that gets their gradients.

    belongs   whether a file is one of the suite's
    """

    belongs: Callable[[str], bool]
    run: TestRun = field(default_factory=TestRun)
    _nested: threading.local = field(default_factory=threading.local)
    _wrappers: dict[int, tuple[Any, Any]] = field(default_factory=dict)  # id of the original -> original, wrapper

    def install(self) -> None:
        """Wrap what is imported now, and what will be."""
        sys.meta_path.insert(0, AfterImport({*ENTRY_POINTS, *CHECKERS}, self._imported))
        for name in [*ENTRY_POINTS, *CHECKERS]:
            if name in sys.modules:
                self._imported(sys.modules[name])
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] not in PACKAGES:
                self._rebind(module)

    def _imported(self, module: ModuleType) -> None:
        for path, where in ENTRY_POINTS.get(module.__name__, {}).items():
            *parents, name = path.split(".")
            holder: Any = module
            for part in parents:
                holder = getattr(holder, part, None)
            original = getattr(holder, name, None)
            if callable(original) and id(original) not in self._wrappers:
                wrapper = self._wrapped(original, where, module.__name__)
                self._wrappers[id(original)] = original, wrapper
                setattr(holder, name, wrapper)
        if module.__name__ in CHECKERS:
            self._rebind(module)
            for name, used in list(vars(module).items()):
                if isinstance(used, ModuleType) and used.__name__ == "jax._src.api":
                    copied = ModuleType(used.__name__)  # jax itself keeps the originals
                    vars(copied).update(vars(used))
                    self._rebind(copied)
                    setattr(module, name, copied)

    def _rebind(self, module: ModuleType) -> None:
        """Names of a module that were bound to an original before it was wrapped."""
        for name, value in list(getattr(module, "__dict__", {}).items()):
            original, wrapper = self._wrappers.get(id(value), (None, None))
            if original is not None and original is value:
                setattr(module, name, wrapper)

    def _wrapped(self, original: Callable[..., Any], where: Where, library: str) -> Any:
        how, place = where
        if how == ACCUMULATED:
            return self._accumulating(original)
        if how == FUNCTION:

            @functools.wraps(original)
            def transform(*args: Any, **kwargs: Any) -> Any:
                made = original(*args, **kwargs)
                if isinstance(made, functools.partial) and made.func is original:  # options of a decorator
                    return functools.partial(transform, **made.keywords)
                return self._handing(made, 0 if place is None and kwargs.get("has_aux") else place, library)

            return transform
        if how == PULLBACK:

            @functools.wraps(original)
            def differentiate(*args: Any, **kwargs: Any) -> Any:
                value, pullback, *aux = self._outermost(original)(*args, **kwargs)
                return (value, self._pullback(pullback, library), *aux)

            return differentiate
        return self._handing(original, place, library)

    def _pullback(self, pullback: Callable[..., Any], library: str) -> Any:
        """jax's pullbacks are trees of arrays, which a compiled function may return."""
        if library not in JAX:
            return self._handing(pullback, None, library)
        from jax.tree_util import Partial

        return Partial(functools.partial(self._call, None, library), pullback)

    def _handing(self, function: Any, place: int | None, library: str) -> Any:
        """The function, with the gradient in its result spoiled where it is the suite's turn."""
        if not callable(function):
            return function

        def handed(*args: Any, **kwargs: Any) -> Any:
            return self._call(place, library, function, *args, **kwargs)

        for name in functools.WRAPPER_ASSIGNMENTS:
            with contextlib.suppress(AttributeError, TypeError):  # some callable objects have a name that is no text
                setattr(handed, name, getattr(function, name))
        vars(handed).update(getattr(function, "__dict__", {}), __wrapped__=function)
        return handed

    def _call(self, place: int | None, library: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        if self._is_nested or not self._asked_by_the_suite():
            return function(*args, **kwargs)
        result = self._outermost(function)(*args, **kwargs)
        if place is None:
            return self._spoiled(result, library)
        return (*result[:place], self._spoiled(result[place], library), *result[place + 1 :])

    @property
    def _is_nested(self) -> bool:
        return getattr(self._nested, "depth", 0) > 0

    def _outermost(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function; any further gradient inside is a step of its computation."""

        def called(*args: Any, **kwargs: Any) -> Any:
            self._nested.depth = getattr(self._nested, "depth", 0) + 1
            try:
                return function(*args, **kwargs)
            finally:
                self._nested.depth -= 1

        return called

    def _asked_by_the_suite(self) -> bool:
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            name, file = frame.f_globals.get("__name__", ""), frame.f_code.co_filename
            if name in CHECKERS:
                return True
            between = name.partition(".")[0] in PACKAGES or name in (__name__, "functools", "contextlib")
            if not between and not file.startswith("<"):
                return self.belongs(file)
            frame = frame.f_back
        return False

    def _spoiled(self, gradient: Any, library: str) -> Any:
        """The gradient as the test gets it. Counts the call."""
        if library in JAX:
            import jax

            leaves, structure = jax.tree_util.tree_flatten(gradient)
            changed = self._changed(leaves, jax.numpy)
            return jax.tree_util.tree_unflatten(structure, changed)
        leaves, treespec = optree.tree_flatten(gradient, none_is_leaf=True)
        changed = self._changed(leaves, sys.modules["torch"] if library == "torch" else np)
        return optree.tree_unflatten(treespec, changed)

    def _changed(self, leaves: Sequence[Any], xp: Any) -> list[Any]:
        run, places = self.run, floating(leaves)
        arrays = [leaves[i] for i in places]
        before = [_numbers(array) for array in arrays]
        if run.calls == 0:
            run.first = _digest(before)
        run.traced |= any(numbers is None for numbers in before)
        spoiled = list(leaves)
        if run.takes_this_call and run.spoil is not None:
            with np.errstate(all="ignore"):
                for i, array in zip(places, run.spoil.apply(arrays, xp), strict=True):
                    spoiled[i] = array
            for i, array, old in zip(places, arrays, before, strict=True):
                is_other = spoiled[i] is not array
                run.changed |= is_other and (old is None or old != _numbers(spoiled[i]))
        run.calls += 1
        return spoiled

    def _accumulating(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """torch's backward pass, which adds the gradient to the attribute `grad` of leaves."""

        @functools.wraps(original)
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if self._is_nested or not self._asked_by_the_suite():
                return original(tensors, *args, **kwargs)
            import torch

            targets = list(_leaves(tensors, kwargs.get("inputs")))
            old = [None if leaf.grad is None else leaf.grad.detach().clone() for leaf in targets]
            result = self._outermost(original)(tensors, *args, **kwargs)
            with contextlib.nullcontext() if kwargs.get("create_graph") else torch.no_grad():
                reached = [i for i, leaf in enumerate(targets) if leaf.grad is not None]
                added = [targets[i].grad if old[i] is None else targets[i].grad - old[i] for i in reached]
                for i, before, after in zip(reached, added, self._changed(added, torch), strict=True):
                    if after is before:
                        continue
                    total = after if old[i] is None else old[i] + after
                    if total.requires_grad:
                        targets[i].grad = total
                    else:
                        targets[i].grad.copy_(total)
            return result

        return backward


def _leaves(tensors: Any, inputs: Any) -> Iterator[Any]:
    """The tensors whose `grad` a backward pass of these tensors reaches."""
    if inputs is not None:
        yield from [inputs] if hasattr(inputs, "grad_fn") else inputs
        return
    roots = [tensors] if hasattr(tensors, "grad_fn") else list(tensors)
    for root in roots:
        if root.grad_fn is None and root.requires_grad:
            yield root
    waiting, seen = [root.grad_fn for root in roots if root.grad_fn is not None], set[Any]()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            yield node.variable
        waiting += [following for following, _ in node.next_functions]


def _numbers(array: Any) -> bytes | None:
    """The bits of an array; None where it has none yet, in a trace or under vmap."""
    try:
        if hasattr(array, "detach"):
            array = array.detach().cpu()
            array = array.to(sys.modules["torch"].float64) if str(array.dtype) == "torch.bfloat16" else array
            return bytes(array.resolve_conj().resolve_neg().numpy().tobytes())
        return np.asarray(array).tobytes()
    except Exception:  # libraries raise various exceptions for a traced array
        return None


def _digest(arrays: Sequence[bytes | None]) -> str | None:
    """One text for all of these numbers."""
    numbers = [array for array in arrays if array is not None]
    if len(numbers) < len(arrays):
        return None
    return hashlib.sha256(b"|".join(numbers)).hexdigest()


def of_suite(root: Path) -> Callable[[str], bool]:
    """Whether a file is one of the suite's below `root`: a test, a conftest.py, or in a folder of tests."""

    @functools.cache
    def belongs(file: str) -> bool:
        path = Path(file)
        if not path.is_relative_to(root):
            return False
        *folders, name = path.relative_to(root).parts
        is_test = name.startswith("test_") or name.endswith(("_test.py", "_tests.py")) or name == "conftest.py"
        return is_test or bool({"test", "tests", "testing"} & set(folders))

    return belongs
