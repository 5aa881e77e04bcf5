"""The reverse sweep: it takes adjoints from a result back to everything it was computed from.

It applies the chain rule once for each record, from the last to the first. The adjoint of each argument grows by the
adjoint of the result times the partial derivative (paper, section 1, steps 3 to 6):

    x̄_i += gradient_i(val, ȳ, *x)        for val = rule(*x)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from adbench.tape.core.recording import CALLBACK, Record, Tape
from adbench.tape.core.rule import AllInputs, Rule, RuleError, Value
from adbench.tape.values import divided_as_numpy, has_nan, settle, shape_of


def sweep(records: Iterable[Record], *, keep: bool = False) -> None:
    """Propagate adjoints through the records, given last to first.

    All adjoints except the seed's must be zero. With `keep`, adjoints of intermediate arrays stay readable.
    """
    for rule, out, cells, saved, params, _ in records:
        if rule is CALLBACK:
            saved()
        elif cells and not (type(out.adj) is float and out.adj == 0.0):
            adj = out.writable() if out.shape else out.adj
            for i, part in enumerate(contributions(rule, adj, cells, saved, params)):
                if (cell := cells[i]) is not None:
                    cell.adj = cell.adj + fitted(rule, i, part, cell.shape)
                    if cell.shape:
                        cell.own = True
            if not keep:
                out.adj = 0.0


def contributions(rule: Rule, adj: Value, cells: Sequence[Any], saved: tuple[Any, Any], params: dict[str, Any]) -> Any:
    """The rule's contribution to the adjoint of each argument; None for a constant."""
    val, inputs = saved
    if isinstance(rule.reverse, AllInputs):
        return rule.reverse.fn([cell is not None for cell in cells], val, adj, *inputs, **params)
    pairs = zip(rule.reverse, cells, strict=True)
    return [None if cell is None else divided_as_numpy(g, val, adj, *inputs, **params) for g, cell in pairs]


def fitted(rule: Rule, i: int, part: Value, shape: tuple[int, ...]) -> Value:
    """A contribution in its argument's shape; for an elementwise rule, summed over repeated elements."""
    part = settle(part)
    got = shape_of(part)
    if got == shape or (type(part) is float and part == 0.0):
        return part
    check_broadcast(rule, i, shape, got)
    lead = len(got) - len(shape)
    axes = tuple(k for k, m in enumerate(got) if k < lead or (shape[k - lead] == 1 and m != 1))
    return settle(part.sum(axes).reshape(shape))


def check_broadcast(rule: Rule, i: int, shape: tuple[int, ...], got: tuple[int, ...]) -> None:
    """Raise RuleError unless the rule is elementwise, and an argument of this shape was broadcast to the other."""
    lead = len(got) - len(shape)
    if not rule.elementwise or lead < 0 or any(n not in (1, m) for n, m in zip(shape, got[lead:], strict=True)):
        whose = "of all arguments" if isinstance(rule.reverse, AllInputs) else f"of argument {i}"
        what = f"{rule.name}: the gradient function {whose} returned the wrong shape"
        raise RuleError(f"{what}: expected {shape}, got {got}")


PASSES: list[Callable[..., None]] = [sweep]
"""Sweeps, tried in turn until no NaN reaches an independent variable."""


@np.errstate(all="ignore")
def propagate(tape: Tape, seeds: Sequence[tuple[Any, Value]], leaves: Sequence[Any], *, keep: bool = False) -> None:
    """Sweep a tape from these (cell, adjoint) seeds, without warnings: the forward pass already warned of overflow."""
    for one_pass in PASSES:
        if tape.swept:
            tape.zero_adjoints()
        tape.swept = True
        for cell, adj in seeds:
            cell.adj = adj
            if cell.shape:
                cell.own = False
        one_pass(reversed(tape), keep=keep)
        for leaf in leaves:
            if has_nan(leaf.adj):
                break
        else:
            return
