"""Custom nodes from Python functions that run in the reverse sweep.

After "Thinking About Automatic Differentiation in Fun New Ways" (Stan, 2020). They are opaque: a compiler cannot look
into them and forward mode has no use for them. Where a function's derivative can be written as a rule,
`function_gradients` is the better choice.
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
    """Has `fn()` called when the reverse sweep comes to this point.

    By then the adjoints of everything computed later are complete. `fn` moves adjoints on, for y = a + b:

        a.adj += y.adj
        b.adj += y.adj
    """
    callback_tape().append((CALLBACK, new_cell(()), (), fn, {}, ASK))


def make_callback_var(value: Value, fn: Callable[[Any], None]) -> Any:
    """A new variable with this value, and `fn(variable)` called when the sweep reaches it: one node for both.

    y = make_callback_var(np.linalg.inv(a.val), lambda vi: add_to(a, -vi.val.T @ vi.adj @ vi.val.T))
    """
    tape = callback_tape()
    node = new_leaf(tape, leaf_value(value, "make_callback_var"))
    tape[-1] = (CALLBACK, node.cell, (), lambda: fn(node), {"value": node.val}, ASK)
    return node
