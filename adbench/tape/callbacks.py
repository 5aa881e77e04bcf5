"""Nodes from Python functions that run in the reverse sweep.

A callback is opaque: no compiler can look into it, and forward mode cannot use it. If you can write the derivative as a
rule, prefer `function_gradients`. Source: "Thinking About Automatic Differentiation in Fun New Ways" (Stan, 2020).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adbench.tape.core.node import new_leaf
from adbench.tape.core.recording import ASK, CALLBACK, new_cell
from adbench.tape.core.rule import Value
from adbench.tape.values import leaf_value
from adbench.tape.variable import callback_tape


def reverse_pass_callback(fn: Callable[[], None]) -> None:
    """Call `fn()` when the reverse sweep reaches this point.

    By then the adjoints of all later values are complete. `fn` passes adjoints on. For y = a + b:

        a.adj += y.adj
        b.adj += y.adj
    """
    callback_tape().append((CALLBACK, new_cell(()), (), fn, {}, ASK))


def make_callback_var(value: Value, fn: Callable[[Any], None]) -> Any:
    """A new variable with this value, one node. The sweep calls `fn(variable)` when it reaches the node.

    y = make_callback_var(np.linalg.inv(a.val), lambda vi: add_to(a, -vi.val.T @ vi.adj @ vi.val.T))
    """
    tape = callback_tape()
    node = new_leaf(tape, leaf_value(value, "make_callback_var"))
    tape[-1] = (CALLBACK, node.cell, (), lambda: fn(node), {"value": node.val}, ASK)
    return node
