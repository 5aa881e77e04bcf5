"""The reverse sweep over records of every form, in as little time and memory as Python allows.

It gives the results of `core.sweep`. In addition it reads the compact forms (see `quick_records`), adds in place into
arrays that no one else holds, and stores an adjoint as one number while all its elements are equal.

It uses these attributes of rules:

    fresh     contributions are new arrays (or `adj`, or views of it), so the sweep may add into them
    scatter   for a function that reads part of its first argument: scatter(buffer, adj, **params) adds the contribution
              in place, at the cost of the part, not of the whole; `adj` may be one number for all elements
    slope     for an elementwise function or a sum, of one argument: its derivative, if that is one number
    reads     the positions in (val, *inputs) that gradient functions read, set by `quick_records`

**Zero times infinity is zero here.** A path through an exact zero contributes nothing, even if another factor on it is
infinite or NaN: x √x has derivative 0 at 0, and so has a branch that `where` did not select. Other NaN pass through.
The rule costs nothing where no NaN arises: the first sweep multiplies plainly. Only if a NaN reaches an independent
variable, a second sweep, `careful`, applies the rule at every elementwise node. The price: a derivative that is the
finite limit of 0 · inf, as of √x · √(2x) at 0, comes out as 0. (`identities` recognises √x · √x, and a second
derivative through such a 0 is NaN, see `singular`.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from adbench.tape.core.forward import Dual
from adbench.tape.core.recording import ASK, CALLBACK, AdjointCell, Record
from adbench.tape.core.rule import AllInputs, Rule, Value, function_gradients
from adbench.tape.core.sweep import check_broadcast, contributions
from adbench.tape.fast.blocks import LARGE, full, product, room
from adbench.tape.rules.elementwise import no_slope, subtract, where
from adbench.tape.rules.shapes import broadcast_to, sum_to
from adbench.tape.singular import flat, is_masked, unknown
from adbench.tape.values import (
    MINUS_ONE,
    ONE,
    PLAIN,
    divided_as_numpy,
    is_nested,
    may_have_nan,
    settle,
    shape_of,
    value_of,
    with_infinities,
)

_EDGES = function_gradients(
    lambda p, q: p, (lambda _v, adj, p, _q: adj * p, lambda _v, adj, _p, q: adj * q), name="scalar node"
)
"""The rule of a compact record in the careful sweep: its inputs are the partials."""


def sweep(
    records: Iterable[Record],
    *,
    careful: bool = False,
    keep: bool = False,
    advance: Callable[[Iterable[Record]], None] | None = None,
) -> None:
    """Propagate adjoints through the records, given last to first.

    All adjoints except the seed's must be zero. With `keep`, adjoints of intermediate arrays stay readable. `advance`
    sweeps the next records as far as it can.
    """
    if advance is not None:
        advance(records)
    for rule, out, a, b, p, q in records:
        if q is ASK:
            adj = out.adj
            if not a:  # an independent variable, or a callback
                if rule is CALLBACK:
                    b()
            elif type(adj) is not float or adj != 0.0:
                if p is None:
                    add_products(out, adj, a, b, type(adj) is np.ndarray and out.own and not keep)
                else:
                    ask(rule, out, adj, a, b, p, careful)
                if not keep:
                    out.adj = 0.0
        elif (adj := out.adj) or type(adj) is not float:  # an active adjoint of value 0 may still have derivatives
            if a is not None:
                a.adj += adj * p
            if b is not None:
                b.adj += adj * q
            if advance is not None:  # records of scalars mostly follow each other
                advance(records)


def add(cell: Any, part: Value, own: bool) -> None:
    """cell.adj += part, an array of the cell's shape or one number for all; with `own`, no one else holds `part`."""
    have = cell.adj
    if type(have) is float and have == 0.0:
        cell.adj = part
        cell.own = own
    elif type(have) is np.ndarray and cell.own and type(part) in PLAIN:
        have += part
    elif own and type(part) is np.ndarray and type(have) in PLAIN:
        part += have
        cell.adj = part
        cell.own = True
    else:
        cell.adj = total = have + part
        cell.own = type(total) is np.ndarray


# Compact records of arrays: products with known partials


def add_products(out: Any, adj: Value, cells: Sequence[Any], partials: Sequence[Any], spend: bool) -> None:
    """cell.adj += adj · partial for one or two arguments; with `spend`, `adj` is not needed afterwards."""
    if len(cells) == 1:
        add_product(out, cells[0], adj, partials[0], spend)
        return
    a, b = cells
    p, q = partials
    if b is None:
        add_product(out, a, adj, p, spend)
    elif a is None:
        add_product(out, b, adj, q, spend)
    else:
        add_product(out, a, adj, p, False)
        add_product(out, b, adj, q, spend and p is not ONE)


def add_product(out: Any, cell: Any, adj: Value, partial: Value, spend: bool) -> None:
    """cell.adj += adj · partial; with `spend`, in the memory of `adj`."""
    own = True
    if type(cell) is not AdjointCell:
        cell.adj += _total(adj, partial, out.shape)
        return
    if type(adj) is float and adj == 1.0:
        part, own = partial, False
    elif partial is ONE:
        part, own = adj, spend
    elif type(partial) not in PLAIN:
        part = adj * partial
    elif spend:
        adj *= partial
        part = adj
    elif type(adj) is np.ndarray and adj.size >= LARGE:
        part = np.multiply(adj, partial, room(cell.shape))
    else:
        part = -adj if partial is MINUS_ONE else adj * partial
    if type(part) not in PLAIN:  # of an outer level, where a number never means an array
        part = broadcast_to(settle(part), cell.shape)
    if type(cell.adj) is float and cell.adj == 0.0:
        cell.adj = part
        cell.own = own
    else:
        add(cell, part, own)


def _total(adj: Value, partial: Value, shape: tuple[int, ...]) -> Value:
    """Σ adj · partial over the elements of a result of this shape: the contribution to a scalar argument."""
    if type(partial) is tuple:
        return _total(adj, partial[0], shape) * partial[1]
    if type(adj) is np.ndarray:
        if type(partial) is float:
            return float(np.add.reduce(adj, None)) * partial
        if type(partial) is np.ndarray:
            # Up to 128 terms numpy's sum is no more accurate than a dot product.
            return float(np.vdot(adj, partial) if adj.size <= 128 else np.add.reduce(product(adj, partial), None))
    elif type(adj) is float:
        if type(partial) is float:
            return adj * partial * math.prod(shape)
        if type(partial) is np.ndarray:
            return adj * float(np.add.reduce(partial, None))
    return sum_to(broadcast_to(adj * partial, shape), ())


# The general form: ask the rule


def ask(
    rule: Rule, out: Any, adj: Value, cells: Sequence[Any], saved: Any, params: dict[str, Any], careful: bool
) -> None:
    """Add the rule's contribution to the adjoint of each active argument."""
    val, inputs = saved
    if rule.scatter is not None and type(adj) in PLAIN and type(cells[0].adj) in PLAIN:
        rule.scatter(cells[0].writable(), adj, **params)
        return
    shape = out.shape
    one_for_all = type(adj) is float and shape != ()  # one number for all elements of the adjoint
    if one_for_all and (
        careful or not rule.elementwise or not rule.fresh or [c for c in cells if c is not None and c.shape != shape]
    ):
        adj, one_for_all = full(shape, adj), False
    if type(rule.reverse) is AllInputs:
        parts = contributions(rule, adj, cells, saved, params)
        for i, (cell, part) in enumerate(zip(cells, parts, strict=True)):
            if cell is not None:
                accumulate(rule, i, cell, part, adj)
        return
    for i, cell in enumerate(cells):
        if cell is None:
            continue
        gradient = rule.reverse[i]
        try:
            part = gradient(val, adj, *inputs, **params) if params else gradient(val, adj, *inputs)
        except ArithmeticError:
            gradient = with_infinities(gradient)
            part = gradient(val, adj, *inputs, **params)
        if careful and may_have_nan(part):
            part = _zero_wins_at(rule, part, adj, gradient, val, inputs, params)
        if one_for_all and (type(part) is not np.ndarray or part.shape != shape):
            part = settle(part)
            if type(part) is not float:
                part = broadcast_to(part, shape)
            add(cell, part, False)
        else:
            accumulate(rule, i, cell, part, adj)


def accumulate(rule: Rule, i: int, cell: Any, part: Value, adj: Value) -> None:
    """cell.adj += part, in the cell's shape; never in place if someone else may hold the array."""
    shape = cell.shape
    if type(part) is np.ndarray:
        if part.shape == shape and shape:
            add(cell, part, rule.fresh and part is not adj and part.base is None)
            return
        if rule.elementwise and not shape:  # a scalar, which met every element of an array
            part = float(np.add.reduce(part, None))
    if type(part) is not float:
        part = settle(part)
    if shape_of(part) != shape:
        if type(part) is not float or part != 0.0:  # the number 0.0 means none
            check_broadcast(rule, i, shape, shape_of(part))
            accumulate(rule, i, cell, settle(sum_to(part, shape)), adj)
    elif shape:
        add(cell, part, False)
    else:
        have = cell.adj
        cell.adj = part if type(have) is float and have == 0.0 else have + part


def zero_wins(part: Value, factor: Value, partial: Value, *, along: bool = False) -> Value:
    """part = factor · partial with 0 · inf = 0: replace NaN by 0 where one factor is an exact zero.

    A factor (adjoint or tangent) of 0 wins over any partial, and a partial of 0 wins over an infinite factor.
    """
    plain, slope = value_of(factor), value_of(partial)
    is_zero = (plain == 0.0) | ((slope == 0.0) & np.isinf(plain))
    lost = is_zero & np.isnan(value_of(part))
    known = where(lost, 0.0, part)
    return known if type(part) in PLAIN else _unknown_again(known, lost, factor, partial, along)


def _unknown_again(known: Value, lost: Value, factor: Value, partial: Value, along: bool) -> Value:
    """Mark the derivative as unknown where 0 · inf was replaced in a product that is itself being differentiated.

    In arrays it is known where the zero does not change to first order: most such zeros come from branches not taken. A
    number is a plain 0 there. Other tangents of numbers are NaN (`along`), because their own derivative may be 0 by the
    same rule.
    """
    if shape_of(known):
        surely = np.logical_or(flat(factor, lost), flat(partial, lost))
    else:
        surely = np.logical_or(is_masked(factor), is_masked(partial))
    lost = np.logical_and(lost, np.logical_not(surely))
    for x in (factor, partial):
        if is_nested(x):
            known = known + unknown(lost, x, value=math.nan if along else 0.0)
    return known


def _zero_wins_at(
    rule: Rule, part: Value, adj: Value, gradient: Any, val: Value, inputs: Sequence[Value], params: dict[str, Any]
) -> Value:
    """The contribution of one argument, with zero times infinity as zero if the rule reveals its factors."""
    if rule.elementwise:
        ones = np.ones(shape_of(adj)) if shape_of(adj) else 1.0
        return zero_wins(part, adj, divided_as_numpy(gradient, val, ones, *inputs, **params))
    if is_nested(adj):  # an adjoint of value 0 may still have derivatives
        return where(np.isnan(value_of(part)) & np.logical_not(np.any(value_of(adj))), 0.0, part)
    return part if np.any(value_of(adj)) else 0.0


def spelled_out(record: Record) -> Record:
    """A record of a compact form in the general form."""
    _, out, a, b, p, q = record
    if q is not ASK:
        return (_EDGES, out, [a, b], (None, [p, q]), {}, ASK)
    if p is not None or not a:
        return record
    if len(a) == 1:  # a sum gives its adjoint, a number, to every element
        return (_EDGES, out, a, (None, [full(a[0].shape, b[0]), None]), {}, ASK)
    return (_EDGES, out, a, (None, [p[0] * p[1] if type(p) is tuple else p for p in b]), {}, ASK)


quiet_sweep = np.errstate(all="ignore")(sweep)
"""Without warnings: it handles 0 · inf, and the forward pass has warned of everything else."""


def _is_flat(record: Record) -> bool:
    """Whether the result never changes: a step, as sign x, or x - x."""
    rule, _, a, b, p, q = record
    if rule is CALLBACK:
        return False
    slopes = rule.reverse
    if slopes is not None and type(slopes) is not AllInputs and all(slope is no_slope for slope in slopes):
        return True
    if q is not ASK:
        return a is b and type(p) is float and p + q == 0.0
    return rule is subtract and len(a) == 2 and a[0] is a[1]


def careful_records(records: Iterable[Record]) -> Iterable[Record]:
    """The records in the general form, without nodes that never change."""
    return (spelled_out(record) for record in records if not _is_flat(record))


def careful_sweep(records: Iterable[Record], *, keep: bool = False) -> None:
    """`sweep` with zero times infinity as zero at every elementwise node."""
    sweep(careful_records(records), careful=True, keep=keep)


plain_part = Dual.part


def careful_part(rule: Rule, i: int, val: Value, tan: Value, inputs: list[Value], params: dict[str, Any]) -> Value:
    """`Dual.part` with zero times infinity as zero."""
    gradient = rule.forward and rule.forward[i]
    if gradient is None:
        return plain_part(rule, i, val, tan, inputs, params)
    if type(tan) is float and tan == 0.0 and rule.elementwise:
        return 0.0
    try:
        part = gradient(val, tan, *inputs, **params)
    except ArithmeticError:
        gradient = with_infinities(gradient)
        part = gradient(val, tan, *inputs, **params)
    if rule.elementwise and may_have_nan(part):
        return zero_wins(part, tan, divided_as_numpy(gradient, val, 1.0, *inputs, **params), along=True)
    return part
