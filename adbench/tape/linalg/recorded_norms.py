"""Norms and roots of powers, recognised on the tape: √(x · x), ∛(x · x · x), √Σ x², √(x · x + y · y).

At 0 these are |x|, x, the norm and the hypotenuse. The engine knows their second derivatives, while the chain rule
would multiply 0 by ∞. A root looks for them only where its argument is 0 and its derivative is being differentiated;
there every record keeps its inputs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from adbench.tape.core.node import Array
from adbench.tape.core.recording import Record, Tape
from adbench.tape.core.rule import Active, Value
from adbench.tape.rules import elementwise as e
from adbench.tape.rules.indexing import getitem
from adbench.tape.rules.reductions import _sum, norm2
from adbench.tape.rules.shapes import stack
from adbench.tape.values import shape_of, value_of

DEPTH = 16
"""So many of the last records are searched."""


class _Power(NamedTuple):
    """A value of the tape, given by its cell, to a power."""

    cell: Any
    base: Value
    exponent: float


def smooth_root(u: Any, order: float) -> Value:
    """u ** (1 / order) as a function of the base, for a value on a tape that is such a power or sum; else None."""
    power = _power(u.tape, u.cell)
    if power is None:
        return _norm(u) if order == 2.0 else None
    degree = power.exponent / order
    if degree < 1.0 or degree % 1.0 or not _vanishes(power.base):
        return None
    x = _value(u.tape, power)
    root = x if degree == 1.0 else e.power(x, degree)
    return e.absolute(root) if degree % 2.0 and not power.exponent % 2.0 else root


def _norm(u: Any) -> Value:
    """√Σ x² over some axes, or √(x² + y²)."""
    record = _record(u.tape, u.cell)
    if record is None or record[0] not in (_sum, e.add):
        return None
    rule, _, cells, _, params, _ = record
    squares = [_power(u.tape, cell) for cell in cells]
    if not all(one is not None and one.exponent == 2.0 and _vanishes(one.base) for one in squares):
        return None
    values = [_value(u.tape, one) for one in squares if one is not None]
    shape = shape_of(values[0])
    if rule is e.add:
        return norm2(stack(values), axes=(0,)) if shape == shape_of(values[1]) else None
    axes = None if params is None else params["axes"]
    return norm2(values[0], axes=tuple(range(len(shape))) if axes is None else axes)


def _power(tape: Tape, cell: Any) -> _Power | None:
    """The power of a base that this value is, as a product of equal factors or a constant power; else None."""
    record = _record(tape, cell)
    if record is None or record[0] not in (e.multiply, e.square, e.power):
        return None
    rule, _, cells, (_, inputs), _, _ = record
    if rule is e.multiply and None not in cells:
        x, y = (_power(tape, c) or _Power(c, v, 1.0) for c, v in zip(cells, inputs, strict=True))
        return x._replace(exponent=x.exponent + y.exponent) if _is_same(tape, x.cell, y.cell) else None
    exponent = 2.0 if rule is e.square else inputs[1] if rule is e.power and cells[1] is None else 0.0
    if type(exponent) not in (int, float) or exponent < 2.0 or exponent % 1.0:
        return None
    x = _power(tape, cells[0]) or _Power(cells[0], inputs[0], 1.0)
    return x._replace(exponent=x.exponent * exponent)


def _is_same(tape: Tape, a: Any, b: Any) -> bool:
    """Whether two cells are those of one value, or of one element that was read twice."""
    if a is b:
        return True
    one, other = _record(tape, a), _record(tape, b)
    if one is None or other is None or not one[0] is other[0] is getitem or one[2][0] is not other[2][0]:
        return False
    index = one[4]["index"]
    return type(index) is int and type(other[4]["index"]) is int and index == other[4]["index"]


def _record(tape: Tape, cell: Any) -> Record | None:
    """The record of this cell's value, if it is one of the last."""
    return next((record for record in tape[: -DEPTH - 1 : -1] if record[1] is cell), None)


def _vanishes(base: Value) -> bool:
    """Whether an element is 0; a symbol's may be."""
    plain = value_of(base)
    return isinstance(plain, Active) or bool(np.any(np.equal(plain, 0.0)))


def _value(tape: Tape, power: _Power) -> Value:
    """The base as a value on the tape."""
    value = Array()
    value.val, value.tape, value.cell = power.base, tape, power.cell
    return value
