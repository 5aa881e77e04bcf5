"""Gradients attached to values, tracked gradients, and reverse mode on request, modelled on pqR.

    with_gradient(f, a=3.0, b=8.0)        f(a=3, b=8), with .gradient["a"] and .gradient["b"]

    with track_gradient(a=7.0) as (a,):   nothing is attached; ask with gradient_of
        r = a**2
        gradient_of(r)                    # 14.0

    back_gradient(g, p)                   g(p), with its derivative in p by one reverse sweep inside any mode

The form of the gradient of A with respect to B
-----------------------------------------------
A scalar, B scalar      a scalar
A scalar, B an array    an array of B's shape (pqR: a vector)
A an array, B scalar    an array of A's shape
A (n,), B (m,)          the Jacobian, an n × m matrix: J[i, j] = ∂A_i/∂B_j
matrices and more       an array of shape A.shape + B.shape, as from `jacobian`. pqR ignores dimensions and makes it a
                        matrix, J.reshape(A.size, B.size); with dimensions kept, `M - 0.1 * g` works for a matrix
A or B a nest           a nest: B's structure outside, A's structure inside

A list is a nest, even a list of numbers: `[x, y]` has a list of gradients, `tape.stack([x, y])` has a Jacobian.

Modes
-----
A construct takes its mode as the first argument: "reverse" (the default, a tape), "forward" or "hybrid" (compact
Jacobians, see `compact_mode`). All nest in any combination, because a gradient is a value of the outer constructs: the
gradient of the gradient of a³ at 7 is 42.

Source: R. M. Neal, "An automatic differentiation extension for R, and its implementation in pqR" (slides, 2019).
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import optree

from adbench.tape.core.functionals import plain, vjp
from adbench.tape.core.node import new_leaf
from adbench.tape.core.rule import Active, TapeError, Value
from adbench.tape.jacobians import rows
from adbench.tape.levels import forward_level, on_tape
from adbench.tape.pqr.compact_forms import Implicit
from adbench.tape.pqr.compact_mode import Frame
from adbench.tape.pqr.custom_gradient import OneCall
from adbench.tape.rules.elementwise import positive
from adbench.tape.rules.shapes import asarray, ravel, reshape
from adbench.tape.trees import NAMESPACE, _register_node, flatten, tree_flatten, tree_unflatten
from adbench.tape.values import any_active, leaf_value, shape_of, size_of

MODES = ("reverse", "forward", "hybrid")


# The levels that a construct can open, with their variables and gradients


class _OnTape:
    """Reverse mode: the variables are leaves of a tape, and a gradient takes one sweep per element."""

    def __init__(self, tape: Any, values: Sequence[Value]) -> None:
        self.tape, self.level = tape, tape.level
        self.leaves = [new_leaf(tape, value) for value in values]
        self.cells = [leaf.cell for leaf in self.leaves]  # stored now, because x[i] = v rebinds a variable

    def variables(self) -> list[Value]:
        return self.leaves

    def value(self, y: Value) -> Value:
        return plain(y, self.tape)

    def blocks(self, y: Value) -> list[Value]:
        """∂y/∂x for each variable, of shape y.shape + x.shape."""
        return rows(y, self.tape, self.cells)


@contextmanager
def _opened(mode: str, values: Sequence[Value]) -> Iterator[_OnTape | Frame]:
    if mode == "reverse":
        with on_tape() as tape:
            yield _OnTape(tape, values)
        return
    with forward_level() as level:
        frame = Frame(level, mode == "hybrid", values)
        try:
            yield frame
        finally:
            frame.is_open = False


class _Construct(NamedTuple):
    """An open `with_gradient` or `track_gradient`: its level, and the structure of its variables, a dict by name."""

    level: _OnTape | Frame
    structure: Any

    def gradient(self, y: Any) -> dict[str, Any]:
        """The gradient of the nest y in each variable, with the variable's structure outside and y's inside."""
        leaves, structure = tree_flatten(y)
        for leaf in leaves:
            if isinstance(leaf, Active) and leaf.level > self.level.level:
                raise TapeError(
                    "gradient_of: the value belongs to a derivative inside this track_gradient or with_gradient; "
                    "call gradient_of there, or pass a result of that derivative"
                )
        blocks = [self.level.blocks(asarray(leaf)) for leaf in leaves]
        of_each = [tree_unflatten(structure, [row[k] for row in blocks]) for k in range(self.structure.num_leaves)]
        gradients: dict[str, Any] = tree_unflatten(self.structure, of_each)
        return gradients


class _Open(threading.local):
    """The open constructs of this thread, innermost last."""

    def __init__(self) -> None:
        self.constructs: list[_Construct] = []


_open = _Open()


class Tracked(SimpleNamespace):
    """The variables of a `track_gradient`, by name or by unpacking in the given order."""

    def __iter__(self) -> Iterator[Any]:
        return iter(vars(self).values())


@contextmanager
def track_gradient(mode: str = "reverse", /, **inputs: Any) -> Iterator[Any]:
    """Inside the block, `gradient_of` returns gradients with respect to these inputs.

    with track_gradient(a=3.0, b=8.0) as (a, b):
        gradient_of(a * b + a**2)         # {"a": 14.0, "b": 3.0}

    `as v` gives the variables as v.a and v.b. Inputs are numbers, arrays or nests. To use a value of the block after
    it, take its .val. Source: pqR slides, "Using `track gradient` and `gradient_of`".
    """
    if mode not in MODES:
        raise ValueError(f"track_gradient, with_gradient: mode: expected one of {', '.join(MODES)}, got {mode!r}")
    if not inputs:
        raise TypeError("track_gradient, with_gradient: expected inputs by name, got none; write a=3.0")
    leaves, structure = tree_flatten(inputs)
    paths: Any = optree.tree_paths(inputs, namespace=NAMESPACE)  # type: ignore[arg-type]  # a dict of anything
    values = [leaf_value(x, f"gradient with respect to {path[0]}") for x, path in zip(leaves, paths, strict=True)]
    with _opened(mode, values) as level:
        _open.constructs.append(_Construct(level, structure))
        depth = len(_open.constructs)
        try:
            yield Tracked(**tree_unflatten(structure, level.variables()))
        finally:
            del _open.constructs[depth - 1 :]


def gradient_of(y: Any) -> Any:
    """The gradient of y in the variables of the innermost open `track_gradient` or `with_gradient`.

    For one variable, its gradient; for several, a dict by name. The forms are listed in this module's docstring. The
    gradient is a value of the outer constructs, which can differentiate it again.
    """
    if not _open.constructs:
        raise TapeError("gradient_of: no track_gradient or with_gradient block is open; call it inside one")
    gradients = _open.constructs[-1].gradient(y)
    return next(iter(gradients.values())) if len(gradients) == 1 else gradients


def with_gradient(f: Callable[..., Any], mode: str = "reverse", /, **inputs: Any) -> Any:
    """f(**inputs) with gradients attached: the result behaves like the value and has `.gradient[name]`.

    r = with_gradient(lambda a, b: a * b + a**2, a=3.0, b=8.0)
    r, r.gradient["a"], r.gradient["b"]          # 33.0, 14.0, 3.0

    f may return a number, an array or a nest. Values computed from the result have no gradient attached.
    Source: pqR slides, "The `with gradient` construct".
    """
    with track_gradient(mode, **inputs) as tracked:
        construct = _open.constructs[-1]
        y = f(**vars(tracked))
        leaves, structure = tree_flatten(y)
        value = tree_unflatten(structure, [construct.level.value(leaf) for leaf in leaves])
        return _attached(value, construct.gradient(y))


# Values with a gradient attached


class _Number(float):
    """A float with a gradient."""


class _Array(np.ndarray[Any, np.dtype[np.float64]]):
    """An array with a gradient; parts of it and results computed from it have none."""

    def __array_wrap__(self, array: Any, _context: Any = None, _return_scalar: bool = False) -> Any:
        return np.asarray(array)[()]


class _List(list[Any]):
    """A list with a gradient."""


class _Tuple(tuple[Any, ...]):
    """A tuple with a gradient."""


class _Dict(dict[str, Any]):
    """A dict with a gradient."""


_register_node(_List, lambda v: ((list(v),), None), lambda _, plain: plain[0], namespace=NAMESPACE)
_register_node(_Tuple, lambda v: ((tuple(v),), None), lambda _, plain: plain[0], namespace=NAMESPACE)
_register_node(_Dict, lambda v: ((dict(v),), None), lambda _, plain: plain[0], namespace=NAMESPACE)
_WITH: dict[type, Callable[[Any], Any]] = {
    float: _Number,
    np.ndarray: lambda v: v.view(_Array),
    list: _List,
    tuple: _Tuple,
    dict: _Dict,
}


def _attached(value: Any, gradient: dict[str, Any]) -> Any:
    """The value with this gradient; one of an outer level gets a new node, as it may be a variable there."""
    make = positive if isinstance(value, Active) else _WITH.get(type(value), copy.copy)
    result = make(value)
    try:
        object.__setattr__(result, "gradient", gradient)
    except AttributeError:
        raise TypeError(
            f"with_gradient: f should return a number, an array, a list, tuple, dict or dataclass, got "
            f"{type(value).__name__}; use track_gradient"
        ) from None
    return result


# Reverse mode on request


def back_gradient(f: Callable[..., Value], *args: Any) -> Value:
    """f(*args), differentiated in reverse mode and only in its arguments; f returns a number or an array.

    Inside forward mode with many variables, operations in f do not compute derivatives in all of them: a scalar result
    costs one reverse sweep, then one step of the chain rule. Inside reverse mode it is one node. Pass all variables
    that f uses as arguments. Source: pqR slides, "Explicit reverse mode with back gradient".
    """
    leaves, rebuild = flatten(args, "back_gradient: arguments")
    if not any_active(leaves):
        return asarray(f(*args))

    def on_leaves(parts: Sequence[Value]) -> Value:
        return asarray(f(*rebuild(parts)))

    def value_and_gradients(*parts: Value) -> tuple[Value, tuple[Any, ...]]:
        """With a scalar the gradients, from one recording; with an array their left products, by sweeps."""
        with on_tape() as tape:
            level = _OnTape(tape, parts)
            y = on_leaves(level.variables())
            value, shape = level.value(y), shape_of(y)
            if shape == ():
                return value, tuple(level.blocks(y))

        def product(i: int, w: Value) -> Value:
            adjoints = [vjp(on_leaves, list(parts), reshape(w[k], shape))[1][i] for k in range(shape_of(w)[0])]
            return asarray([ravel(adjoint) for adjoint in adjoints])

        sizes = [(size_of(value), size_of(x)) for x in parts]
        return value, tuple(Implicit(size, partial(product, i), None) for i, size in enumerate(sizes))

    return OneCall("back_gradient: the function", value_and_gradients, len(leaves)).rule(*leaves)
