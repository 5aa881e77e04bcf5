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
from .plain import has_nan, settle, shape_of, value_of, with_infinities
from .recording import ASK, CALLBACK, LEAF, MINUS_ONE, ONE, Record, Tape
from .rule import AllInputs, Rule, RuleError, TapeError, Value, function_gradients
from .shapes import sum_to

_EDGES = function_gradients(
    lambda p, q: p, (lambda _v, adj, p, _q: adj * p, lambda _v, adj, _p, q: adj * q), name="scalar node"
)
"""A record of the compact form as a rule, for the careful sweep: its inputs are the partials."""


class WrongShapeError(RuleError):
    """A contribution does not have the shape of the argument it is for."""


def sweep(records: Iterable[Record], *, careful: bool = False, keep: bool = False) -> None:
    """Propagates adjoints through the records, given last to first.

    All adjoints must be zero but for the seed's. With `keep`, adjoints of intermediate arrays stay readable.
    """
    for rule, out, a, b, p, q in records:
        if q is ASK:
            ask(rule, out, a, b, p, careful, keep)
            if a and not keep:
                out.adj = 0.0
        elif (adj := out.adj) or type(adj) is not float:  # an active adjoint of value 0 has derivatives all the same
            if a is not None:
                a.adj += adj * p
            if b is not None:
                b.adj += adj * q


def ask(
    rule: Rule, out: Any, cells: Sequence[Any], saved: Any, params: dict[str, Any] | None, careful: bool, keep: bool
) -> None:
    """One step for a record of a general form: the rule's contribution to the adjoint of each active argument."""
    if not cells:  # an independent variable, or a callback
        if rule is CALLBACK:
            saved()
        return
    adj = out.adj
    if type(adj) is float and adj == 0.0:
        return
    if params is None:
        (a, b), (p, q) = cells, saved
        # The last product may be formed in the adjoint's own memory, which nobody needs afterwards.
        spend = type(adj) is np.ndarray and out.own and not (keep or careful or p is ONE)
        if a is not None:
            add_product(rule, a, adj, p, careful, spend and b is None)
        if b is not None:
            add_product(rule, b, adj, q, careful, spend)
        return
    val, inputs = saved
    i = -1
    try:
        if rule.special and _ask_special(rule, adj, cells, val, inputs, params):
            return
        for cell in cells:
            i += 1
            if cell is None:
                continue
            gradient = rule.reverse[i]
            try:
                part = gradient(val, adj, *inputs, **params) if params else gradient(val, adj, *inputs)
            except ArithmeticError:
                gradient = with_infinities(gradient)
                part = gradient(val, adj, *inputs, **params)
            if careful and has_nan(part):
                part = _zero_wins_at(rule, part, adj, gradient, val, inputs, params)
            accumulate(rule, cell, part, adj)
    except WrongShapeError as wrong:
        whose = f"of argument {i}" if i >= 0 else "of all arguments"
        raise RuleError(f"{rule.name}: the gradient function {whose} returned the wrong shape: {wrong}") from None


def add_product(rule: Rule, cell: Any, adj: Value, partial: Value, careful: bool, spend: bool) -> None:
    """cell.adj += adj · partial, for arrays of one shape; with `spend` in the memory of `adj`."""
    if spend and partial is not ONE and (type(partial) is float or type(partial) is np.ndarray):
        adj *= partial
        part, adj = adj, None
    else:
        part = adj if partial is ONE else -adj if partial is MINUS_ONE else adj * partial
    if careful and has_nan(part):
        part = zero_wins(part, adj, partial)
    if type(cell.adj) is float:
        cell.adj = part
        cell.own = part is not adj
    else:
        accumulate(rule, cell, part, adj)


def _ask_special(
    rule: Rule, adj: Value, cells: Sequence[Any], val: Value, inputs: Sequence[Value], params: dict[str, Any]
) -> bool:
    """The rules with one gradient function for all arguments, and those that add in place; False if neither helps."""
    if type(rule.reverse) is AllInputs:
        wanted = [cell is not None for cell in cells]
        parts = rule.reverse.fn(wanted, val, adj, *inputs, **params)
        for i, cell in enumerate(cells):
            if cell is not None:
                accumulate(rule, cell, parts[i], adj)
        return True
    if rule.scatter is not None and type(adj) in PLAIN and type(cells[0].adj) in PLAIN:
        rule.scatter(cells[0].writable(), adj, **params)
        return True
    return False


PLAIN = (float, np.ndarray)


def accumulate(rule: Rule, cell: Any, part: Value, adj: Value) -> None:
    """cell.adj += part; adds in place only into an array that the sweep itself has made."""
    have = cell.adj
    if type(part) is np.ndarray and part.shape == (shape := cell.shape) and shape:
        if type(have) is float:
            cell.adj = part
            cell.own = rule.fresh and part is not adj and part.base is None
        elif type(have) is np.ndarray and cell.own:
            have += part
        else:
            cell.adj = have + part
            cell.own = type(have) is np.ndarray
        return
    if type(part) is not float:
        part = settle(part)
    if shape_of(part) != cell.shape:
        part = _fitted(rule, cell.shape, part)
        if part is not None:
            accumulate(rule, cell, part, adj)
        return
    cell.adj = part if type(have) is float and have == 0.0 else have + part


def _fitted(rule: Rule, shape: tuple[int, ...], part: Value) -> Value:
    """A contribution in its argument's shape: undoes broadcasting for elementwise rules; the float 0.0 is nothing."""
    got = shape_of(part)
    if type(part) is float and part == 0.0:
        return None
    lead = len(got) - len(shape)
    if rule.elementwise and lead >= 0 and all(n in (1, m) for n, m in zip(shape, got[lead:], strict=True)):
        return settle(sum_to(part, shape))
    raise WrongShapeError(f"expected {shape}, got {got}")


def _ones_like(adj: Value) -> Value:
    return np.ones(shape_of(adj)) if shape_of(adj) else 1.0


def zero_wins(part: Value, factor: Value, partial: Value) -> Value:
    """part = factor · partial with 0 · inf = 0: NaN is replaced by 0 where one factor is an exact zero.

    A factor (adjoint or tangent) of 0 wins over any partial; a partial of 0 over an infinite factor.
    """
    plain, slope = value_of(factor), value_of(partial)
    is_zero = (plain == 0.0) | ((slope == 0.0) & np.isinf(plain))
    return where(is_zero & np.isnan(value_of(part)), 0.0, part)


def _zero_wins_at(
    rule: Rule, part: Value, adj: Value, gradient: Any, val: Value, inputs: Sequence[Value], params: dict[str, Any]
) -> Value:
    """The contribution of one argument with zero times infinity as zero, as far as the rule tells its factors."""
    if rule.elementwise:
        return zero_wins(part, adj, gradient(val, _ones_like(adj), *inputs, **params))
    return part if np.any(value_of(adj)) else 0.0


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
            if cell.shape:
                cell.own = False
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
