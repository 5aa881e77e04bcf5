"""A function's operations in a library, in order: each can be the last of a shorter program, and has Python text.

jax traces a jaxpr, torch a graph of ATen operations, and `adbench.functions.operations` notes those of adbench.tape.
"""

from __future__ import annotations

import enum
import importlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adbench.execution.operators.prepared_point import CasePoint
from adbench.functions.operations import operations
from adbench.model import tree
from adbench.model.backend import Backend
from adbench.model.case import function_of
from adbench.model.errors import Unsupported

MOST_NUMBERS = 10_000
"""Of a constant in a script."""

WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class TracedOperation:
    """One operation.

    name     of its result, or names with commas
    words    what it computes: "sub(v2, v3)"
    text     the same in Python; lacks: why there is no such text
    before   functions in front of the program that the text calls
    """

    name: str
    words: str
    text: str
    lacks: str = ""
    before: str = ""

    def __str__(self) -> str:
        return f"{self.name} = {self.words}"


@dataclass(frozen=True)
class TracedProgram:
    """The operations of a function, in order.

    names    of the numbers of the arguments, in order
    ends     the positions of operations with a floating-point result
    prefix   prefix(k, xp, leaves) -> the result of operation k
    """

    names: tuple[str, ...]
    operations: tuple[TracedOperation, ...]
    ends: tuple[int, ...]
    prefix: Callable[[int, Any, Sequence[Any]], Any]

    def function(self, end: int, xp: Any) -> Callable[..., Any]:
        """f(*args) of a shorter program, which ends with this one of `ends`."""
        return lambda *args: self.prefix(self.ends[end], xp, numbers_of(args))

    def needed(self, last: int) -> list[TracedOperation]:
        """The operations that the result of this one depends on, in order."""
        names, found = {*WORD.findall(self.operations[last].name)}, list[TracedOperation]()
        for one in reversed(self.operations[: last + 1]):
            if not names.isdisjoint(WORD.findall(one.name)):
                names.update(WORD.findall(one.text))
                found.insert(0, one)
        return found

    def lines(self, end: int) -> tuple[list[str], list[str]]:
        """The text of the shorter program without operations that it does not need, and the functions that it calls.

        Raises Unsupported if an operation has no text.
        """
        needed = self.needed(self.ends[end])
        for one in needed:
            if one.lacks:
                raise Unsupported(f"{one} cannot be written in a script: {one.lacks}")
        lines = [f"{one.name} = {one.text}" for one in needed]
        return [*lines, f"return {needed[-1].name}"], [one.before for one in needed if one.before]


def numbers_of(args: Sequence[Any]) -> list[Any]:
    """The floating-point leaves of arguments."""
    return [leaf for leaf in tree.leaves(list(args)) if not tree.is_static(leaf)]


def traced(backend: Backend, at: CasePoint) -> TracedProgram:
    """The operations of a case at this point. Raises Unsupported with the reason if the library cannot trace it."""
    family = backend.name.partition("_")[0]
    if family == "tape":
        return _of_tape(at)
    native = backend.native_inputs(at.args)
    f, leaves = backend.function(at.case, at.names, at.size), numbers_of(native)

    def flat(*numbers: Any) -> Any:
        following = iter(numbers)
        return f(*(tree.map_leaves(lambda leaf: leaf if tree.is_static(leaf) else next(following), x) for x in native))

    return traced_flat(family, flat, leaves)


def traced_flat(family: str, flat: Callable[..., Any], leaves: Sequence[Any]) -> TracedProgram:
    """The operations of a function of native numbers and arrays, in jax or torch. Raises Unsupported."""
    return {"jax": _of_jax, "torch": _of_torch}[family](flat, leaves)


def _of_tape(at: CasePoint) -> TracedProgram:
    def f(xp: Any, *given: Any) -> Any:
        return function_of(at.case, at.names, xp, at.size)(*given)

    try:
        noted = operations(f, at.args, at.names, range(len(at.args)))
    except Exception as error:  # of the case, on values that only note
        raise Unsupported(f"its operations cannot be noted: {type(error).__name__}: {error}") from error
    names = []
    for name, arg in zip(at.names, at.args, strict=True):
        leaves = tree.leaves(arg)
        of_arg = [name] if isinstance(arg, float | np.ndarray) else [f"{name}.{k}" for k in range(len(leaves))]
        names += [one for one, leaf in zip(of_arg, leaves, strict=True) if not tree.is_static(leaf)]

    if clash := {one.name for one in noted}.intersection(names):
        raise Unsupported(f"its argument {min(clash)} has the name of a result; rename it")

    def prefix(k: int, xp: Any, leaves: Sequence[Any]) -> Any:
        values = dict(zip(names, leaves, strict=True))
        for one in noted[: k + 1]:
            values[one.name] = one.text(xp, *(values[name] for name in one.given), *one.constants)
        return values[noted[k].name]

    def plain(text: str) -> str:
        return text.replace(".", "_") if text in names else text

    made = []
    for one in noted:
        text = one.source
        for name in one.given:
            text = text.replace(name, plain(name)) if name != plain(name) else text
        made.append(TracedOperation(one.name, one.written, text.replace("xp.", "tape.")))
    return TracedProgram(tuple(map(plain, names)), tuple(made), tuple(range(len(made))), prefix)


def _of_torch(flat: Callable[..., Any], leaves: Sequence[Any]) -> TracedProgram:
    torch = importlib.import_module("torch")
    make_fx = importlib.import_module("torch.fx.experimental.proxy_tensor").make_fx
    map_arg = importlib.import_module("torch.fx.node").map_arg
    try:
        module = make_fx(flat)(*leaves)
    except Exception as error:  # for example for a branch that depends on data
        raise Unsupported(f"torch cannot trace it: {str(error).splitlines()[0]}") from error
    nodes = list(module.graph.nodes)
    inputs, output = [node for node in nodes if node.op == "placeholder"], nodes[-1].args[0]
    steps = [node for node in nodes if node.op in ("call_function", "get_attr")]

    def prefix(k: int, _xp: Any, numbers: Sequence[Any]) -> Any:
        values = dict(zip(inputs, numbers, strict=True))
        for node in steps[: k + 1]:
            if node.op == "get_attr":
                values[node] = getattr(module, node.target)
            else:
                args, options = (map_arg(part, values.__getitem__) for part in (node.args, node.kwargs))
                values[node] = node.target(*args, **options)
        return values[steps[k]]

    made, ends = [], []
    for k, node in enumerate(steps):
        if node.op == "get_attr":
            made.append(_constant(node.name, getattr(module, node.target).detach().numpy(), "torch.tensor({})"))
            continue
        passed = [*map(repr, node.args), *(f"{name}={value!r}" for name, value in node.kwargs.items())]
        is_aten = hasattr(node.target, "_schema")  # or operator.getitem
        text = f"torch.ops.{node.target}" if is_aten else f"operator.{node.target.__name__}"
        words = f"{str(node.target).removesuffix('.default') if is_aten else text}({', '.join(passed)})"
        made.append(TracedOperation(node.name, words, f"{text}({', '.join(passed)})"))
        value = node.meta.get("val", node.meta.get("tensor_meta"))
        if getattr(value, "dtype", None) is not None and value.dtype == torch.float64:
            ends.append(k)
        if node is output:
            break
    return TracedProgram(tuple(node.name for node in inputs), tuple(made), tuple(ends), prefix)


def _constant(name: str, array: Any, text: str) -> TracedOperation:
    lacks = f"a constant of {array.size:,} numbers" if array.size > MOST_NUMBERS else ""
    literal = f"{array.tolist()!r}, dtype={text.partition('.')[0]}.{array.dtype.name}"
    return TracedOperation(name, "a constant", text.format(literal), lacks)


def _of_jax(flat: Callable[..., Any], leaves: Sequence[Any]) -> TracedProgram:
    jax = importlib.import_module("jax")
    try:
        closed = jax.make_jaxpr(flat)(*leaves)
    except Exception as error:  # for example for a branch that depends on data
        raise Unsupported(f"jax cannot trace it: {str(error).splitlines()[0]}") from error
    jaxpr = closed.jaxpr
    output, equations = jaxpr.outvars[0], jaxpr.eqns
    made, ends, text = [], [], _JaxText(jax)
    for variable, constant in zip(jaxpr.constvars, closed.consts, strict=True):
        made.append(_constant(text.name(variable), np.asarray(constant), "jax.numpy.array({})"))
    before = len(made)
    names = tuple(map(text.name, jaxpr.invars))
    for k, equation in enumerate(equations):
        made.append(text.operation(equation))
        kind = getattr(equation.outvars[0].aval, "dtype", None)
        if len(equation.outvars) == 1 and kind == np.float64:
            ends.append(before + k)
        if output in equation.outvars:
            break

    def prefix(k: int, _xp: Any, numbers: Sequence[Any]) -> Any:
        part = equations[: k - before + 1]
        shorter = jaxpr.replace(eqns=part, outvars=part[-1].outvars)
        return jax.core.eval_jaxpr(shorter, closed.consts, *numbers)[0]

    return TracedProgram(names, tuple(made), tuple(ends), prefix)


class _JaxText:
    """The equations of a jaxpr as Python."""

    def __init__(self, jax: Any) -> None:
        self._jax, self._names = jax, dict[Any, str]()
        self._primitives = vars(importlib.import_module("jax.extend.core.primitives"))

    def name(self, variable: Any) -> str:
        """The name of a variable, or the text of a constant."""
        if hasattr(variable, "val"):
            return repr(np.asarray(variable.val).item())
        return self._names.setdefault(variable, f"v{len(self._names)}")

    def operation(self, equation: Any) -> TracedOperation:
        """One equation."""
        operands, title = [*map(self.name, equation.invars)], equation.primitive.name
        results, inner = [self.name(one) for one in equation.outvars], equation.params.get("jaxpr")
        target, lacks, before = f"primitives.{title}_p.bind", "", ""
        passed = [*operands]
        try:
            if f"{title}_p" not in self._primitives:
                if f"{title}_p" not in vars(self._jax.lax):
                    raise Unsupported("jax exports no such primitive")
                target = f"jax.lax.{title}_p.bind"
            if title in ("jit", "pjit") and inner is not None:
                title, target = str(equation.params["name"]), f"jax.jit({results[0]}_inner)"
                before = self._function(f"{results[0]}_inner", inner)
            elif title.startswith("custom_"):
                called = equation.params["call_jaxpr"].jaxpr.eqns
                title = str(called[0].params.get("name", "")) if len(called) == 1 else ""
                if not hasattr(self._jax.nn, title or "-"):
                    raise Unsupported("it defines its derivative")
                target = f"jax.nn.{title}"
            else:
                passed += [f"{name}={self._parameter(name, value)}" for name, value in equation.params.items()]
        except Unsupported as error:
            lacks = str(error)
        is_list = equation.primitive.multiple_results and target.endswith(".bind")
        names = ", ".join(results) + ("," if is_list and len(results) == 1 else "")
        words = f"{title or 'a function'}({', '.join(operands)})"
        return TracedOperation(names, words, f"{target}({', '.join(passed)})", lacks, before)

    def _function(self, name: str, closed: Any) -> str:
        if closed.consts:
            raise Unsupported("it has constants")
        inner = _JaxText(self._jax)
        arguments = ", ".join(map(inner.name, closed.jaxpr.invars))
        lines, before = [f"def {name}({arguments}):"], []
        for number, equation in enumerate(closed.jaxpr.eqns):
            one = inner.operation(equation)
            if one.lacks:
                raise Unsupported(f"{one.words}: {one.lacks}")
            own = f"{name}_{number}"
            before += [one.before.replace(f"{one.name}_inner", own)] if one.before else []
            lines.append(f"    {one.name} = {one.text.replace(f'{one.name}_inner', own)}")
        results = ", ".join(map(inner.name, closed.jaxpr.outvars))
        return "\n\n\n".join([*before, "\n".join([*lines, f"    return {results}"])])

    def _parameter(self, name: str, value: Any) -> str:
        if type(value).__name__ in vars(self._jax.lax):
            return str(value) if isinstance(value, enum.Enum) else repr(value)
        if isinstance(value, tuple):
            return f"({''.join(f'{self._parameter(name, part)}, ' for part in value)})"
        if value is None or isinstance(value, bool | int | float | str | np.dtype):
            return repr(value)
        raise Unsupported(f"its parameter {name} has no text")
