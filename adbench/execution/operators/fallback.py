"""Operators that a library lacks, made from those it has, and labelled so.

One of `jvp` and `vjp` is enough for first order, one of `hvp` and `hessian` for second. This is for functions whose
value is a scalar; those whose value is an array are in fallback_of_arrays.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from adbench.catalog.installed import installed_version
from adbench.execution.operators import fallback_of_arrays as of_arrays
from adbench.model import tree
from adbench.model.backend import Backend, Call
from adbench.model.errors import Unsupported
from adbench.model.operator import OF_ARRAYS, WITH_VECTOR, Operator

NATIVE = "native"
OF_A_MODULE = re.compile(r"module '([\w.]+)' has no attribute '(\w+)'")


@dataclass(frozen=True)
class Prepared:
    """A prepared operator: `call(*args)`, and `how`: "native", or "from …" with the operators it is made from."""

    call: Call
    how: str


Part = Callable[..., Any]
Make = Callable[[Mapping[str, Part], tuple[Any, ...], tuple[Any, ...]], Any]
"""(parts, x, vectors) -> result: `parts[operator](*vectors)` calls an operator at the present inputs, in numpy."""


def prepare(
    backend: Backend, operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Prepared:
    """The backend's own operator, or a fallback from others it has.

    A Jacobian whose pattern the case declares is taken in as few directions as the pattern allows, unless the backend
    says that it does so itself.

    Raises Unsupported, with the backend's reason, where there is neither.
    """
    if of_arrays.is_array_valued(f) and operator not in OF_ARRAYS:
        raise Unsupported(f"the value is an array, which has no {operator}: ask for jacobian, jvp or vjp")
    if operator == "jacobian" and not backend.sparse_jacobian and (pattern := getattr(f, "sparsity", None)) is not None:
        with suppress(Unsupported):
            return Prepared(*of_arrays.coloured(backend, f, args, wrt, pattern))
    try:
        return Prepared(_own(backend, operator, f, args, wrt), NATIVE)
    except Unsupported as refusal:
        return instead(backend, operator, f, args, wrt, refusal)


def _own(
    backend: Backend, operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Call:
    try:
        return backend.prepare(operator, f, args, wrt)
    except AttributeError as error:
        raise lacking(error) from error


def lacking(refusal: Exception) -> Exception:
    """The refusal; of an AttributeError of a module's, that the version of the library which is installed lacks it.

    Raises any other AttributeError again: that is a fault.
    """
    if isinstance(refusal, Unsupported) or not isinstance(refusal, AttributeError):
        return refusal
    found = OF_A_MODULE.match(str(refusal))
    if found is None:
        raise refusal
    module, name = found.groups()
    version = installed_version(module.partition(".")[0])
    installed = f" in version {version}, which is installed" if version else ""
    return Unsupported(f"{module} has no {name}{installed}")


def instead(
    backend: Backend,
    operator: Operator,
    f: Callable[..., Any],
    args: tuple[Any, ...],
    wrt: tuple[int, ...],
    refusal: Exception,
) -> Prepared:
    """The operator made from the first of its fallbacks that the backend has; raises `refusal` where it has none."""
    if of_arrays.is_array_valued(f):
        return Prepared(*of_arrays.instead(backend, operator, f, args, wrt, refusal))
    vectors = 1 if operator in WITH_VECTOR else 0
    inputs = args[: len(args) - vectors]
    for needed, make in FALLBACKS.get(operator, ()):
        try:
            calls = {part: _prepared_part(backend, part, f, inputs, wrt) for part in needed}
        except Unsupported:
            continue
        return Prepared(_composed(backend, calls, make, wrt, vectors), f"from {' and '.join(needed)}")
    raise refusal


def _prepared_part(
    backend: Backend, operator: Operator, f: Callable[..., Any], inputs: tuple[Any, ...], wrt: tuple[int, ...]
) -> Call:
    """One of the operators that a fallback is made from; its example vector is of ones."""
    if operator not in WITH_VECTOR:
        return _own(backend, operator, f, inputs, wrt)
    ones = 1.0 if operator == "vjp" else tree.like(tuple(backend.numpy_result(inputs[i]) for i in wrt), np.ones_like)
    return _own(backend, operator, f, (*inputs, *backend.native_inputs((ones,))), wrt)


def _composed(backend: Backend, calls: Mapping[Operator, Call], make: Make, wrt: tuple[int, ...], vectors: int) -> Call:
    def call(*args: Any) -> Any:
        inputs = args[: len(args) - vectors]

        def part(name: Operator) -> Part:
            return lambda *v: backend.numpy_result(backend.waited(calls[name](*inputs, *backend.native_inputs(v))))

        x = tuple(backend.numpy_result(inputs[i]) for i in wrt)
        return make({name: part(name) for name in calls}, x, backend.numpy_result(args[len(inputs) :]))

    return call


def _dot(a: Any, b: Any) -> Any:
    return sum(np.sum(p * q) for p, q in zip(tree.leaves(a), tree.leaves(b), strict=True))


def _gradient_by_columns(parts: Mapping[str, Part], x: tuple[Any, ...], _: Any) -> Any:
    """∇g, entry by entry: J e_i for every unit vector e_i."""
    entries = iter([_scalar(parts["jvp"](unit)) for unit in tree.units(x)])
    return tree.like(x, lambda leaf: np.array([next(entries) for _ in range(leaf.size)]).reshape(leaf.shape))


def _hessian_by_columns(parts: Mapping[str, Part], x: tuple[Any, ...], _: Any) -> Any:
    """For every leaf of x the blocks for all leaves of x, column by column: H e for every unit vector e."""
    columns = [tree.leaves(parts["hvp"](unit)) for unit in tree.units(x)]
    shapes = [np.shape(leaf) for leaf in tree.leaves(x)]
    ends = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)])

    def row(which: int) -> Any:
        stacked = np.stack([column[which] for column in columns], axis=-1) if columns else np.zeros((*shapes[which], 0))
        blocks = [
            stacked[..., start:end].reshape(shapes[which] + shape)
            for start, end, shape in zip(ends, ends[1:], shapes, strict=False)
        ]
        return tree.filled(x, blocks)

    return tree.filled(x, [row(which) for which in range(len(shapes))])


def _hvp_by_hessian(parts: Mapping[str, Part], x: tuple[Any, ...], vectors: tuple[Any, ...]) -> Any:
    """For every leaf of x: Σ over the leaves of v of its block times v's."""
    steps = [np.asarray(step) for step in tree.leaves(vectors[0])]
    blocks = tree.leaves(parts["hessian"]())
    rows = [blocks[start : start + len(steps)] for start in range(0, len(blocks), len(steps))]
    return tree.filled(
        x, [sum(np.tensordot(b, v, axes=v.ndim) for b, v in zip(row, steps, strict=True)) for row in rows]
    )


def _scalar(value: Any) -> float:
    if np.shape(value) != ():
        raise Unsupported(f"a fallback needs a function whose value is a scalar; it has shape {np.shape(value)}")
    return float(value)


FALLBACKS: Mapping[Operator, tuple[tuple[tuple[Operator, ...], Make], ...]] = {
    "value": ((("value_and_gradient",), lambda parts, x, _: parts["value_and_gradient"]()[0]),),
    "gradient": (
        (("value_and_gradient",), lambda parts, x, _: parts["value_and_gradient"]()[1]),
        (("vjp",), lambda parts, x, _: parts["vjp"](1.0)),
        (("jvp",), _gradient_by_columns),
    ),
    "value_and_gradient": (
        (("value", "gradient"), lambda parts, x, _: (parts["value"](), parts["gradient"]())),
        (("value", "vjp"), lambda parts, x, _: (parts["value"](), parts["vjp"](1.0))),
        (("value", "jvp"), lambda parts, x, _: (parts["value"](), _gradient_by_columns(parts, x, _))),
    ),
    "jacobian": (
        (("gradient",), lambda parts, x, _: parts["gradient"]()),
        (("vjp",), lambda parts, x, _: parts["vjp"](1.0)),
        (("jvp",), _gradient_by_columns),
    ),
    "jvp": (
        (("gradient",), lambda parts, x, vectors: _dot(parts["gradient"](), vectors[0])),
        (("vjp",), lambda parts, x, vectors: _dot(parts["vjp"](1.0), vectors[0])),
    ),
    "vjp": (
        (
            ("gradient",),
            lambda parts, x, vectors: tree.map_leaves(lambda g: g * _scalar(vectors[0]), parts["gradient"]()),
        ),
        (
            ("jvp",),
            lambda parts, x, vectors: tree.map_leaves(
                lambda g: g * _scalar(vectors[0]), _gradient_by_columns(parts, x, ())
            ),
        ),
    ),
    "hvp": ((("hessian",), _hvp_by_hessian),),
    "hessian": ((("hvp",), _hessian_by_columns),),
}
