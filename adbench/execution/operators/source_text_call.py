"""Operators of a function that is given as source text: for programs that no file holds."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adbench.execution.operators import compositions
from adbench.model import tree
from adbench.model.backend import Backend
from adbench.model.errors import MissingFunction, Unsupported, contained
from adbench.model.operator import COMPOSITIONS, WITH_VECTOR, definition

REFUSAL = re.compile("does not require grad|functorch|vmap|is not implemented|not implemented for")
"""How torch says that a value depends on no input, and that it lacks a mode."""

MODULES = re.compile(r"(?<![\w.])((?:adbench|autograd|jax|math|numpy|scipy|tensorflow|torch)(?:\.[a-z]\w*)*)\.")
"""Modules that a text may name, with those inside: jax.scipy.special."""


def answers(
    backend: Backend,
    text: str,
    args: Sequence[Any],
    wrt: Sequence[int],
    vector: Sequence[Any],
    operators: Sequence[str],
) -> dict[str, dict[str, Any]]:
    """The results of operators, one after the other: each with `result`, `unsupported` or `raised`, with the reason.

    text     defines ``f(xp, *args)``
    args     numbers and float64 arrays; vector: v, for operators that take one
    result   one array for each array of the operator's result, the value first
    """
    f = function(text, backend.xp)
    return {operator: _answer(backend, f, tuple(args), tuple(wrt), tuple(vector), operator) for operator in operators}


def function(text: str, xp: Any) -> Callable[..., Any]:
    """The text's f on a namespace; the text may name modules of libraries."""
    scope = imported(text)
    exec(compile(text, "<program>", "exec"), scope)
    f = scope["f"]
    return lambda *args: f(xp, *args)


def imported(text: str) -> dict[str, Any]:
    """The modules that a text names; those inside are imported too, so that they are attributes."""
    scope: dict[str, Any] = {}
    for path in sorted(set(MODULES.findall(text))):
        name, *inner = path.split(".")
        scope[name] = importlib.import_module(name)
        for length in range(1, len(inner) + 1):
            try:
                importlib.import_module(".".join([name, *inner[:length]]))
            except ImportError:  # a class, or a function
                break
    return scope


def _answer(
    backend: Backend,
    f: Callable[..., Any],
    args: tuple[Any, ...],
    wrt: tuple[int, ...],
    vector: tuple[Any, ...],
    operator: str,
) -> dict[str, Any]:
    asked = definition(operator).name
    inputs = (*args, vector) if operator in WITH_VECTOR else args
    native = backend.native_inputs(inputs)
    try:
        with contained(), np.errstate(all="ignore"):
            make = compositions.composed if asked in COMPOSITIONS else None
            call = make(backend, asked, f, native, wrt) if make else backend.prepare(asked, f, native, wrt)
            result = backend.numpy_result(backend.waited(call(*native)))
        return {"result": [np.asarray(leaf) for leaf in tree.leaves(result)]}
    except (Unsupported, NotImplementedError, MissingFunction) as reason:
        return {"unsupported": f"{type(reason).__name__}: {reason}"}
    except AttributeError as reason:  # xp has no such function, or its arrays lack a method
        return {"unsupported": f"{type(reason).__name__}: {reason}"}
    except Exception as error:  # a library may raise anything
        if operator != "value" and "result" not in _answer(backend, f, args, wrt, (), "value"):
            return {"unsupported": f"its value, too, raises {type(error).__name__}: {error}"}
        refused = REFUSAL.search(str(error))
        return {"unsupported" if refused else "raised": f"{type(error).__name__}: {error}"}
