"""Planting wrong rules in the reference engine, for one test and from outside.

The engine has no code for this: its rules are data, which a test replaces. A `Plant` is a function of a
`pytest.MonkeyPatch`, which undoes it, and of `ran`, which is called whenever the planted code runs: a mutant that the
engine bypasses proves nothing.

The wrong function gets the correct one first: `wrong(right, val, adj, *inputs, **params)`.
"""

import functools
import inspect
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import adbench.tape as tape
from adbench.model.backend import Backend, Operator
from adbench.tape.core.rule import AllInputs, Rule

Ran = Callable[[], None]
Plant = Callable[[pytest.MonkeyPatch, Ran], None]
Wrong = Callable[..., Any]


def modules() -> list[Any]:
    return [module for name, module in sorted(sys.modules.items()) if name.split(".")[:2] == ["adbench", "tape"]]


def rule_named(name: str) -> Rule:
    # The compiled engine has separate forms of some rules under the same names; this plants into the eager ones.
    eager = [m for m in modules() if not m.__name__.startswith("adbench.tape.compiled")]
    found = {id(v): v for m in eager for v in vars(m).values() if isinstance(v, Rule) and v.name == name}
    assert len(found) == 1, f"the engine has {len(found)} rules called {name!r}"
    return next(iter(found.values()))


def changed(patch: pytest.MonkeyPatch, rule: Rule, **parts: Any) -> None:
    """Replaces parts of a rule by constructing it again, so that derived values follow."""
    given = {part: parts.get(part, getattr(rule, part)) for part in ("name", "value", "reverse", "forward")}
    more = {part: parts.get(part, getattr(rule, part)) for part in ("elementwise", "fresh", "scatter")}
    new = Rule(*given.values(), **more)
    for slot in Rule.__slots__:
        patch.setattr(rule, slot, getattr(new, slot))


def instead(right: Callable[..., Any], wrong: Wrong, ran: Ran) -> Callable[..., Any]:
    def planted(*args: Any, **params: Any) -> Any:
        ran()
        return wrong(right, *args, **params)

    return planted


def _one_of(gradients: Any, argument: int, wrong: Wrong, ran: Ran, reads_all: bool = False) -> Any:
    if isinstance(gradients, AllInputs):
        return AllInputs(instead(gradients.fn, wrong, ran))
    planted = instead(gradients[argument], wrong, ran)
    if not reads_all:
        functools.update_wrapper(planted, gradients[argument])  # its signature determines what the engine stores
    return tuple(planted if i == argument else g for i, g in enumerate(gradients))


def in_reverse(name: str, wrong: Wrong, argument: int = 0, *, reads_all: bool = False) -> Plant:
    """A wrong gradient function for one argument, in reverse mode only; for `AllInputs` instead of the common one.

    reads_all   it reads values and inputs that the correct one does not, so the engine must store them
    """

    def plant(patch: pytest.MonkeyPatch, ran: Ran) -> None:
        rule = rule_named(name)
        changed(patch, rule, reverse=_one_of(rule.reverse, argument, wrong, ran, reads_all))

    return plant


def in_forward(name: str, wrong: Wrong, argument: int = 0) -> Plant:
    """The same in forward mode only."""

    def plant(patch: pytest.MonkeyPatch, ran: Ran) -> None:
        rule = rule_named(name)
        changed(patch, rule, forward=_one_of(rule.forward, argument, wrong, ran))

    return plant


def in_value(name: str, wrong: Wrong) -> Plant:
    """A wrong value with correct gradient functions."""

    def plant(patch: pytest.MonkeyPatch, ran: Ran) -> None:
        rule = rule_named(name)
        changed(patch, rule, value=instead(rule.value, wrong, ran))

    return plant


def in_scatter(name: str, wrong: Wrong) -> Plant:
    """wrong(right, buffer, adj, **params), instead of adding a contribution correctly."""

    def plant(patch: pytest.MonkeyPatch, ran: Ran) -> None:
        rule = rule_named(name)
        changed(patch, rule, scatter=instead(rule.scatter, wrong, ran))

    return plant


def everywhere(called: str, wrong: Wrong, *, or_else: str = "") -> Plant:
    """A function of the engine, by its name (or its other name), in every module that uses it."""

    def plant(patch: pytest.MonkeyPatch, ran: Ran) -> None:
        name = called if any(inspect.isfunction(vars(m).get(called)) for m in modules()) else or_else
        holders = [m for m in modules() if inspect.isfunction(vars(m).get(name))]
        rights = {id(vars(m)[name]): vars(m)[name] for m in holders}
        assert len(rights) == 1, f"the engine has {len(rights)} functions called {name!r}"
        planted = instead(next(iter(rights.values())), wrong, ran)
        for module in holders:
            patch.setattr(module, name, planted)

    return plant


def in_method(owner: Callable[[], type], name: str, wrong: Wrong) -> Plant:
    """A method of one of the engine's classes; the class is looked up when the mutant is planted."""

    def plant(patch: pytest.MonkeyPatch, ran: Ran) -> None:
        patch.setattr(owner(), name, instead(getattr(owner(), name), wrong, ran))

    return plant


def in_functional(name: str, wrong: Wrong) -> Plant:
    """`tape.gradient` and similar functions: wrong(right, f, x, *vector)."""

    def plant(patch: pytest.MonkeyPatch, ran: Ran) -> None:
        patch.setattr(tape, name, instead(getattr(tape, name), wrong, ran))

    return plant


def in_text(module: str, function: str, old: str, new: str) -> Plant:
    """One rewritten line of a function, for code that is not data: the inner loop of the sweep."""

    def plant(patch: pytest.MonkeyPatch, ran: Ran) -> None:
        home = sys.modules[f"adbench.tape.{module}"]
        text = textwrap.dedent(inspect.getsource(getattr(home, function)))
        assert text.count(old) == 1, f"{module}.{function} has {old!r} {text.count(old)} times; update the mutant"
        head = text.index(":\n", text.index("def ")) + 2
        told = text[:head] + "    _ran()\n" + text[head:].replace(old, new)
        scope: dict[str, Any] = {}
        told = "from __future__ import annotations\n" + told
        exec(compile(told, f"<mutant of {function}>", "exec"), scope)
        # Replaces the code object, so that every holder of the function runs the mutant.
        patch.setattr(getattr(home, function), "__code__", scope[function].__code__)
        patch.setattr(home, "_ran", ran, raising=False)

    return plant


# Wrong backends

Broken = Callable[[Callable[..., Any], Any, Any], Callable[..., Any]]
"""broken(prepare, args, wrt) -> a wrong call; prepare(args, wrt) is the right one's."""

BROKEN: dict[str, Broken] = {}
"""operator -> its current plant."""


def in_prepare(operator: str, broken: Broken) -> Plant:
    """A wrong call of one operator, independent of the engine."""

    def plant(patch: pytest.MonkeyPatch, ran: Ran) -> None:
        patch.setitem(BROKEN, operator, lambda *about: instead(broken(*about), lambda right, *args: right(*args), ran))

    return plant


def with_planted(backend: Backend) -> Backend:
    """The backend with the plants of `in_prepare`."""

    def prepare(operator: Operator, f: Any, args: Any, wrt: Any) -> Any:
        if operator not in BROKEN:
            return backend.prepare(operator, f, args, wrt)
        return BROKEN[operator](lambda args, wrt: backend.prepare(operator, f, args, wrt), args, wrt)

    return replace(backend, prepare=prepare)


# Wrong contributions


def factor(part: Any, error: float, one: bool) -> Any:
    """1 + error in all entries of an array like `part`, or in the middle one only."""
    shape = np.shape(tape.value_of(part))
    if not one or not shape:
        return 1.0 + error
    factors = np.ones(shape)
    factors.flat[factors.size // 2] += error
    return factors


def scaled(error: float, one: bool = False) -> Wrong:
    """A relative error in the correct function's result; for a list, in each part."""

    def wrong(right: Callable[..., Any], *args: Any, **params: Any) -> Any:
        part = right(*args, **params)
        if isinstance(part, list | tuple):
            return [p if p is None else p * factor(p, error, one) for p in part]
        return part * factor(part, error, one)

    return wrong


def after(change: Callable[[Any], Any]) -> Wrong:
    """change(the correct function's result)."""
    return lambda right, *args, **params: change(right(*args, **params))


def in_part(number: int, change: Callable[[Any], Any]) -> Wrong:
    """change(the contribution to one argument), of a gradient function for all arguments at once."""
    return after(lambda parts: [change(part) if i == number else part for i, part in enumerate(parts)])
