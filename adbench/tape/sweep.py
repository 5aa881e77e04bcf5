"""The reverse sweep: adjoints from a result back to everything it was computed from.

The chain rule, once for each record, from the last to the first: the adjoint of each argument grows by the adjoint of
the result times the partial derivative (paper, section 1, steps 3 to 6).

**Zero times infinity is zero here.** A path through an exact zero contributes nothing, even where another factor on it
is infinite or not a number: x √x at 0 has derivative 0, and so has a branch that `where` did not select. Other NaN
are passed on. The rule costs nothing where no NaN arises: a first sweep multiplies plainly, and only if a NaN
reaches an independent variable a second one, `careful`, applies the rule at every elementwise node. The price: a
derivative that is the finite limit of 0 · inf, as of √x · √x at 0, comes out as 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .elementwise import where
from .plain import has_nan, settle, shape_of, value_of
from .recording import ASK, CALLBACK, LEAF, Record, Tape
from .rule import Active, AllInputs, Rule, RuleError, TapeError, Value, function_gradients
from .shapes import sum_to

_EDGES = function_gradients(
    lambda p, q: p, (lambda _v, adj, p, _q: adj * p, lambda _v, adj, _p, q: adj * q), name="scalar node"
)
"""A record of the compact form as a rule, for the careful sweep: its inputs are the partials."""


def sweep(records: Iterable[Record], *, careful: bool = False, keep: bool = False) -> None:
    """Propagates adjoints through the records, given last to first.

    All adjoints must be zero but for the seed's. With `keep`, adjoints of intermediate arrays stay readable.
    """
    for rule, out, a, b, p, q in records:
        if q is ASK:
            ask(rule, out, a, b, p, careful)
            if a and not keep:
                out.adj = 0.0
            continue
        adj = out.adj
        if adj == 0.0 and type(adj) is float:
            continue
        if a is not None:
            a.adj += adj * p
        if b is not None:
            b.adj += adj * q


def ask(rule: Rule, out: Any, cells: Sequence[Any], saved: Any, params: dict[str, Any], careful: bool) -> None:
    """One step for a record of the general form: the rule's contribution to the adjoint of each active argument."""
    if not cells:  # an independent variable, or a callback
        if rule is CALLBACK:
            saved()
        return
    adj = out.adj
    if (type(adj) is float and adj == 0.0) or (careful and not np.any(value_of(adj)) and type(adj) is not float):
        return
    val, inputs = saved
    reverse = rule.reverse
    if type(reverse) is AllInputs:
        wanted = [cell is not None for cell in cells]
        parts = reverse.fn(wanted, val, adj, *inputs, **params)
        for i, cell in enumerate(cells):
            if cell is not None:
                accumulate(rule, i, cell, parts[i], adj)
        return
    for i, cell in enumerate(cells):
        if cell is None:
            continue
        if rule.scatter is not None and type(adj) in PLAIN and type(cell.adj) in PLAIN:
            rule.scatter(cell.writable(), adj, **params)
            continue
        gradient = reverse[i] if reverse is not None else None
        if gradient is None:
            raise RuleError(f"{rule.name} has no derivative in argument {i} in reverse mode")
        part = gradient(val, adj, *inputs, **params)
        if careful and rule.elementwise and has_nan(part):
            part = zero_wins(part, adj, gradient(val, _ones_like(adj), *inputs, **params))
        accumulate(rule, i, cell, part, adj)


PLAIN = (float, np.ndarray)


def accumulate(rule: Rule, i: int, cell: Any, part: Value, adj: Value) -> None:
    """cell.adj += part; adds in place only into an array that the sweep itself has made."""
    if not isinstance(part, (float, np.ndarray, Active)):
        part = float(part)
    if shape_of(part) != cell.shape:
        part = _fitted(rule, i, cell.shape, part)
        if part is None:
            return
    have = cell.adj
    if type(part) is not np.ndarray or not cell.shape:
        part = settle(part)
        cell.adj = part if type(have) is float and have == 0.0 else have + part
    elif type(have) is float:
        cell.adj = part
        cell.own = rule.fresh and part is not adj and part.base is None
    elif cell.own and type(have) is np.ndarray:
        have += part
    else:
        cell.adj = have + part
        cell.own = type(have) is np.ndarray


def _fitted(rule: Rule, i: int, shape: tuple[int, ...], part: Value) -> Value:
    """A contribution in the argument's shape: broadcasting is undone for elementwise rules; the float 0.0 is nothing."""
    got = shape_of(part)
    if got == () and type(value_of(part)) is float and value_of(part) == 0.0 and not isinstance(part, Active):
        return None
    lead = len(got) - len(shape)
    if rule.elementwise and lead >= 0 and all(n in (1, m) for n, m in zip(shape, got[lead:], strict=True)):
        return sum_to(part, shape)
    raise RuleError(f"{rule.name}: the gradient for argument {i} has the wrong shape: expected {shape}, got {got}")


def _ones_like(adj: Value) -> Value:
    return np.ones(shape_of(adj)) if shape_of(adj) else 1.0


def zero_wins(part: Value, factor: Value, partial: Value) -> Value:
    """part = factor · partial with 0 · inf = 0: NaN is replaced by 0 where one factor is an exact zero.

    A factor (adjoint or tangent) of 0 wins over any partial; a partial of 0 over an infinite factor.
    """
    plain, slope = value_of(factor), value_of(partial)
    is_zero = (plain == 0.0) | ((slope == 0.0) & np.isinf(plain))
    return where(is_zero & np.isnan(value_of(part)), 0.0, part)


def _spelled_out(record: Record) -> Record:
    """A record of the compact form in the general form."""
    _, out, a, b, p, q = record
    return record if q is ASK else (_EDGES, out, [a, b], (None, [p, q]), {}, ASK)


def propagate(tape: Tape, seeds: Sequence[tuple[Any, Value]], leaves: Sequence[Any], *, keep: bool = False) -> None:
    """Sweeps a tape from these (cell, adjoint) seeds; a second time, carefully, if a NaN reaches one of the leaves."""
    for careful in (False, True):
        if tape.swept:
            tape.zero_adjoints()
        tape.swept = True
        for cell, adj in seeds:
            cell.adj = adj
        with np.errstate(all="ignore"):  # 0 · inf is dealt with here; of all else the forward pass has warned
            sweep(map(_spelled_out, reversed(tape)) if careful else reversed(tape), careful=careful, keep=keep)
        if not any(has_nan(leaf.adj) for leaf in leaves):
            break


def grad_from(node: Any, wrt: Any = None) -> Any:
    """`Var.grad`: sweeps the node's tape, after which v.adj = ∂node/∂v for every v on it."""
    if node.shape != ():
        raise TapeError(
            f"grad: expected a scalar, got a value of shape {node.shape}; use jacobian, or vjp with weights"
        )
    tape = node.tape
    leaves = [record[1] for record in tape if record[0] is LEAF]
    propagate(tape, [(node.cell, 1.0)], leaves, keep=True)
    if wrt is None:
        return None
    return [v.adj for v in wrt] if isinstance(wrt, (list, tuple)) else wrt.adj
