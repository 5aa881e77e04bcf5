"""Flatten a call's arguments, compute the key of their signature, and assemble the result from its parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adbench.tape import jacobians
from adbench.tape.compiled.runtime.entry_code import StaticArgument
from adbench.tape.compiled.runtime.program import CompiledProgram, CompileOptions
from adbench.tape.compiled.sparse.sparsity import sparse_blocks
from adbench.tape.compiled.trace.record_function import OPERATORS, WITH_MATRIX, WITH_VECTOR
from adbench.tape.core import functionals
from adbench.tape.trees import first, flatten, outputs, tree_flatten, tree_unflatten
from adbench.tape.values import constant


class CallDescription:
    """A function, and what to compute of it; the arguments and results of calls depend on it.

    count      of the function's own arguments
    vectors    1 if the operator takes a vector after them
    wrt        positions of the arguments to differentiate in; `single` if it is one argument, and not a tuple of them
    reorders   whether a vector comes in another order than the arguments
    alive      settings whose identity is part of a signature
    """

    def __init__(
        self, f: Callable[..., Any], example: Sequence[Any], operator: str, wrt: Any, options: CompileOptions
    ) -> None:
        if operator not in OPERATORS:
            raise ValueError(f"compile: operator: expected one of {', '.join(OPERATORS)}, got {operator!r}")
        if options.sparse and operator not in WITH_MATRIX:
            raise ValueError(f"compile: sparse: expected operator 'jacobian' or 'hessian', got {operator!r}")
        self.f = f
        self.name = getattr(f, "__name__", type(f).__name__)
        self.operator = operator
        self.vectors = 1 if operator in WITH_VECTOR else 0
        self.count = len(example) - self.vectors
        if self.count < 0:
            raise TypeError(f"compile: {operator} takes a vector; give an example of it as the last argument")
        self.single = (wrt is None and self.count == 1) or isinstance(wrt, int)
        self.wrt: tuple[int, ...] = _positions(wrt, example[: self.count])
        self.reorders = operator in ("jvp", "hvp") and list(self.wrt) != sorted(self.wrt)
        self.options = options
        self.alive: list[Any] = []


def _positions(wrt: Any, example: Sequence[Any]) -> tuple[int, ...]:
    """The positions of the differentiated arguments; by default all that hold floats."""
    if wrt is None:
        return tuple(
            k for k, arg in enumerate(example) if len(example) == 1 or any(map(_is_float, tree_flatten(arg)[0]))
        )
    positions = (wrt,) if isinstance(wrt, int) else tuple(wrt)
    for k in positions:
        if not 0 <= k < len(example):
            raise ValueError(f"compile: wrt: expected positions from 0 to {len(example) - 1}, got {k}")
    return positions


def _is_float(x: Any) -> bool:
    return isinstance(x, (float, np.floating)) or (isinstance(x, np.ndarray) and x.dtype.kind == "f")


class FlatArguments:
    """A call's arguments as flat data.

    key        the signature
    data       floats and contiguous float64 arrays, in order; the operator's vector last
    examples   the same, but integer and boolean arrays unchanged
    is_flat    whether each argument is one number or array
    """

    def __init__(self, owner: CallDescription, args: Sequence[Any]) -> None:
        count = owner.count
        if len(args) != count + owner.vectors:
            raise TypeError(
                f"{owner.name}: expected {count + owner.vectors} arguments as given to compile, got {len(args)}"
            )
        keys: list[Any] = []
        self.data: list[Any] = []
        self.examples: list[Any] = []
        self.active: list[bool] = []
        self.rebuilds: list[tuple[Any, list[Any]]] = []
        self.is_flat = True
        for k, arg in enumerate(args[:count]):
            wanted = k in owner.wrt
            leaves, structure = flat(arg)
            self.is_flat = self.is_flat and structure is None
            keys.append(structure)
            slots = [self._leaf(x, wanted, keys, owner) for x in leaves]
            self.rebuilds.append((structure, slots))
        self.inputs = len(self.data)
        for vector in _in_order_of_arguments(owner, args[count:]):
            leaves, structure = flat(vector)
            self.is_flat = self.is_flat and structure is None
            for x in leaves:
                value = constant(x, f"{owner.operator}: the vector")
                self.data.append(value)
                keys.append(np.shape(value))
        self.key = tuple(keys)

    def _leaf(self, x: Any, wanted: bool, keys: list[Any], owner: CallDescription) -> Any:
        """An index into the data, or a setting ("static", value)."""
        if wanted and isinstance(x, (int, np.integer)) and not isinstance(x, bool):
            x = float(x)
        if isinstance(x, (float, np.floating)):
            keys.append("float")
            return self._add(float(x), float(x), wanted)
        if isinstance(x, (list, np.ndarray)) and np.ndim(x) == 0:
            x = x[()]  # type: ignore[call-overload]
            return self._leaf(x, wanted, keys, owner)
        if isinstance(x, np.ndarray):
            kind = x.dtype.kind
            if kind not in "fiub" or (wanted and kind == "b"):
                raise TypeError(f"{owner.name}: expected real numbers, got an array of {x.dtype}")
            keys.append((x.shape, "f" if kind == "f" or wanted else kind))
            data = np.ascontiguousarray(x, np.float64)
            if not data.flags.aligned:
                data = data.copy()
            example = data.copy() if kind == "f" or wanted else x.copy()
            return self._add(data, example, wanted)
        if wanted:
            raise TypeError(f"{owner.name}: expected numbers, got {type(x).__name__} {x!r:.60}")
        try:
            hash(x)
            keys.append((type(x), x))
        except TypeError:
            owner.alive.append(x)
            keys.append(("object", id(x)))
        return ("static", x)

    def _add(self, data: Any, example: Any, wanted: bool) -> int:
        self.data.append(data)
        self.examples.append(example)
        self.active.append(wanted)
        return len(self.data) - 1

    def in_order(self, shapes: Sequence[Any]) -> list[Any]:
        """The shape or the `StaticArgument` of each leaf."""
        rest, slots = iter(shapes), [slot for _, slots in self.rebuilds for slot in slots]
        leaves = [StaticArgument(slot[1]) if isinstance(slot, tuple) else next(rest) for slot in slots]
        return [*leaves, *rest]

    def nested(self, values: Sequence[Any]) -> list[Any]:
        """The function's arguments, with these values instead of the data."""
        args = []
        for structure, slots in self.rebuilds:
            leaves = [p[1] if isinstance(p, tuple) else values[p] for p in slots]
            args.append(nest(structure, leaves))
        return args


def flat(x: Any) -> tuple[list[Any], Any]:
    """Leaves and structure; the structure of a single number or array is None."""
    if isinstance(x, (float, int, np.ndarray, np.generic)):
        return [x], None
    leaves, structure = tree_flatten(x)
    return leaves, None if len(leaves) == 1 and leaves[0] is x else structure


def nest(structure: Any, leaves: Sequence[Any]) -> Any:
    """The leaves in a structure of `flat`."""
    return leaves[0] if structure is None else tree_unflatten(structure, leaves)


def _in_order_of_arguments(owner: CallDescription, vectors: Sequence[Any]) -> Sequence[Any]:
    """The vector in the recorded program's order. v comes in the order of `wrt`; w does not belong to the inputs."""
    if not owner.reorders:
        return vectors
    pairs = zip(owner.wrt, vectors[0], strict=True)
    return [tuple(part for _, part in sorted(pairs, key=lambda pair: pair[0]))]


class Assembly:
    """How the parts of a program's result, numbers and arrays, form the result of the operator.

    order       the numbers of the parts that are the leaves of the result, from left to right
    template    the result with these numbers in place of the parts, if it has no nests but tuples; else None
    finished    finished(leaves) is the result; entries of sparse matrices become matrices
    """

    def __init__(self, owner: CallDescription, program: CompiledProgram, arguments: FlatArguments) -> None:
        count = len(program.lowered.results)
        result = _assembled(owner, program, list(range(count)), arguments)
        self.order, self._structure = tree_flatten(result)
        self._is_in_order = self.order == list(range(count))
        self.template = result if _has_only_tuples(result) else None
        simple: dict[Any, Callable[[Sequence[Any]], Any]] = {0: first, tuple(range(count)): tuple}
        self._nested = simple.get(self.template, self._structure.unflatten)
        entries = range(count - len(program.matrices), count)
        self._matrices = [(self.order.index(k), m) for k, m in zip(entries, program.matrices, strict=True)]
        self.finished = self._with_matrices if entries else self._nested

    def is_like(self, other: Assembly) -> bool:
        """Whether the same parts form a result in the same way."""
        return (self.order, self._structure) == (other.order, other._structure)

    def __call__(self, parts: Sequence[Any]) -> Any:
        """The result from its parts in the order of the program."""
        return self.finished(parts if self._is_in_order else [parts[k] for k in self.order])

    def _with_matrices(self, leaves: Sequence[Any]) -> Any:
        leaves = list(leaves)
        for place, matrix in self._matrices:
            leaves[place] = matrix(leaves[place])
        return self._nested(leaves)


def _has_only_tuples(result: Any) -> bool:
    return type(result) is int or (type(result) is tuple and all(map(_has_only_tuples, result)))


def _assembled(owner: CallDescription, program: CompiledProgram, parts: Sequence[Any], arguments: FlatArguments) -> Any:
    """The operator's result, with each of the parts once."""
    value, rest = program.rebuild(parts[: program.values]), parts[program.values :]
    if owner.operator == "value":
        return value
    if owner.operator == "jvp":
        return value, program.rebuild(rest)
    if owner.operator in WITH_MATRIX:
        count = max(sum(arguments.active), 1)
        lines = [_derivative(owner, rest[k : k + count], arguments) for k in range(0, len(rest), count)]
        if owner.operator == "jacobian":
            return value, program.rebuild(lines)
        return value, lines[0], _derivative(owner, lines[1:], arguments)
    derivative = _derivative(owner, rest, arguments)
    return derivative if owner.operator == "gradient" else (value, derivative)


def _derivative(owner: CallDescription, parts: Sequence[Any], arguments: FlatArguments) -> Any:
    """Parts for the differentiated inputs, in the structure of the arguments."""
    flat: list[Any] = [None] * len(arguments.examples)
    active = [k for k, a in enumerate(arguments.active) if a]
    for k, part in zip(active, parts, strict=True):
        flat[k] = part
    derivative = tuple(arguments.nested(flat)[k] for k in owner.wrt)
    return derivative[0] if owner.single else derivative


def eager(owner: CallDescription, args: Sequence[Any]) -> Any:
    """The result from the eager engine."""
    inputs = list(args[: owner.count])

    def of_active(x: Any) -> Any:
        flat = list(inputs)
        for k, part in zip(owner.wrt, (x,) if owner.single else x, strict=True):
            flat[k] = part
        return owner.f(*flat)

    of_active.__name__ = owner.name
    if owner.operator == "value":
        return owner.f(*inputs)
    x = inputs[owner.wrt[0]] if owner.single else tuple(inputs[k] for k in owner.wrt)
    if owner.operator in ("gradient", "value_and_gradient"):
        both = functionals.gradient(of_active, x)
        return both[1] if owner.operator == "gradient" else both
    home = jacobians if owner.operator in ("jacobian", "hessian", "hvp") else functionals
    result = getattr(home, owner.operator)(of_active, x, *args[owner.count :])
    if not owner.options.sparse:
        return result
    inputs = flatten(x, owner.operator)[0]
    values = inputs if owner.operator == "hessian" else outputs(result[0])[0]
    return (*result[:-1], sparse_blocks(result[-1], values, inputs))
