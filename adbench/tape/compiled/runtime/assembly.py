"""Assemble the result of a call from its parts, or get it from the eager engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from adbench.tape import jacobians
from adbench.tape.compiled.runtime.arguments import FlatArguments, Owner
from adbench.tape.compiled.runtime.program import CompiledProgram, CompileOptions
from adbench.tape.compiled.sparse.sparse_results import Template, sparse_blocks
from adbench.tape.compiled.trace.record_function import WITH_MATRIX
from adbench.tape.core import functionals
from adbench.tape.trees import flatten, outputs


class Differentiated(Owner, Protocol):
    """The attributes of a compiled function that its results depend on."""

    f: Callable[..., Any]
    single: bool
    options: CompileOptions


def form(owner: Differentiated, program: CompiledProgram, is_flat: bool) -> str:
    """The form in which the entry assembles a result; "" if Python has to.

    The parts of a derivative in nests (not `is_flat`) are a tuple, also for a single argument.
    """
    parts, single = len(program.lowered.results) - program.values, owner.single and is_flat
    if owner.operator == "value":
        return "one" if program.values == 1 and is_identity(program.rebuild) else ""
    if list(owner.wrt) != sorted(owner.wrt):
        return ""  # the program's parts follow the arguments' order
    if owner.operator == "gradient":
        return "one" if single and parts == 1 else "" if single else "many"
    if program.values != 1 or not is_identity(program.rebuild):
        return ""
    if owner.operator == "jvp":
        return "many"
    if owner.operator == "hessian":
        return "" if not is_flat or (single and parts != 2) else "many" if single else "hessian"
    return "many" if single and parts == 1 else "" if single else "value+many"


def is_identity(rebuild: Callable[..., Any]) -> bool:
    """Whether a value is a single number or array."""
    token = object()
    try:
        return rebuild([token]) is token
    except (TypeError, ValueError, IndexError):
        return False


def assembled(owner: Differentiated, result: tuple[CompiledProgram, list[Any]], arguments: FlatArguments) -> Any:
    """Assemble a result from its parts."""
    program, parts = result
    value = program.rebuild(parts[: program.values])
    rest = parts[program.values :]
    if owner.operator == "value":
        return value
    if owner.operator == "jvp":
        return value, program.rebuild(rest)
    if program.matrices:
        first = len(rest) - len(program.matrices)
        rest[first:] = [matrix(data) for matrix, data in zip(program.matrices, rest[first:], strict=True)]
    if owner.operator in WITH_MATRIX:
        count = max(sum(arguments.active), 1)
        lines = [_derivative(owner, rest[k : k + count], arguments) for k in range(0, len(rest), count)]
        if owner.operator == "jacobian":
            return value, program.rebuild(lines)
        return value, lines[0], _derivative(owner, lines[1:], arguments)
    derivative = _derivative(owner, rest, arguments)
    return derivative if owner.operator == "gradient" else (value, derivative)


def with_matrices(matrices: Sequence[Template]) -> Callable[[Any], Any]:
    """A function of an entry's result, whose last part, an array or tuples of arrays, becomes sparse matrices."""
    single = matrices[0]

    def converted(part: Any, following: Iterator[Template]) -> Any:
        return tuple([converted(p, following) for p in part]) if type(part) is tuple else next(following)(part)

    def finished(parts: Any) -> Any:
        *others, last = parts
        return (*others, converted(last, iter(matrices)) if type(last) is tuple else single(last))

    return finished


def _derivative(owner: Differentiated, parts: Sequence[Any], arguments: FlatArguments) -> Any:
    """Parts for the differentiated inputs, in the structure of the arguments."""
    flat: list[Any] = [None] * len(arguments.examples)
    active = [k for k, a in enumerate(arguments.active) if a]
    for k, part in zip(active, parts, strict=True):
        flat[k] = part
    derivative = tuple(arguments.nested(flat)[k] for k in owner.wrt)
    return derivative[0] if owner.single else derivative


def eager(owner: Differentiated, args: Sequence[Any]) -> Any:
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
    if owner.operator == "gradient":
        return functionals.gradient(of_active, x)[1]
    if owner.operator == "value_and_gradient":
        return functionals.gradient(of_active, x)
    home = jacobians if owner.operator in ("jacobian", "hessian", "hvp") else functionals
    result = getattr(home, owner.operator)(of_active, x, *args[owner.count :])
    if not owner.options.sparse:
        return result
    inputs = flatten(x, owner.operator)[0]
    values = inputs if owner.operator == "hessian" else outputs(result[0])[0]
    return (*result[:-1], sparse_blocks(result[-1], values, inputs))
