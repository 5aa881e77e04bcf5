"""Values of elementwise rules as machine code. Derivatives come from the recorded gradient functions of the rules.

Each entry writes the instructions for one lane or eight; a row of the engine (`function`) names its entry. Entries
follow numpy at the ends of the range: `maximum` passes NaN on, `sign` of -0.0 is 0.0, and a remainder has the divisor's
sign. An elementwise rule without an entry is called in Python when the compiled function runs, and `explain` reports
it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from adbench.tape.compiled.kernels.mathematics import exponentials, logarithms, special_functions, trigonometry
from adbench.tape.compiled.kernels.mathematics.shared_functions import Kernel, Part
from adbench.tape.compiled.trace.symbol import LOGIC, NUMBER, PREDICATES, SAME, WITH_SLOPE
from adbench.tape.core.rule import Rule
from adbench.tape.identities import POWER_OF_ABS, SIGNED_POWER
from adbench.tape.machine.simd import Name, Simd, literal
from adbench.tape.numpy_names import ROWS

Native = Callable[..., Name]

# Functions of LLVM and of the C library


def _instruction(method: str, name: str) -> Native:
    """An instruction that a method of `Simd` writes by its name."""
    return lambda k, *operands: getattr(k, method)(name, *operands)


def _extreme(condition: str) -> Native:
    """maximum or minimum: NaN if either is NaN, the second if both are equal."""

    def write(k: Simd, x: Name, y: Name) -> Name:
        first = k.logic("or", k.compare(condition, x, y), k.compare("uno", x, x))
        return k.select(first, x, y)

    return write


maximum, minimum = _extreme("oge"), _extreme("ole")


def _sign(k: Simd, x: Name) -> Name:
    negative = k.select(k.compare("olt", x, k.constant(0.0)), k.constant(-1.0), k.constant(0.0))
    value = k.select(k.compare("ogt", x, k.constant(0.0)), k.constant(1.0), negative)
    return k.select(k.compare("uno", x, x), x, value)


def _floor_and_rest(k: Simd, x: Name, y: Name) -> tuple[Name, Name]:
    """numpy's divmod of floats: floor(x / y) and the rest, which has the sign of y."""
    zero, one = k.constant(0.0), k.constant(1.0)
    rest = k.binary("frem", x, y)
    quotient = k.binary("fdiv", k.binary("fsub", x, rest), y)
    has_rest = k.compare("une", rest, zero)
    differ = k.logic("xor", k.compare("olt", y, zero), k.compare("olt", rest, zero))
    moved = k.logic("and", has_rest, differ)
    rest = k.select(moved, k.binary("fadd", rest, y), rest)
    quotient = k.select(moved, k.binary("fsub", quotient, one), quotient)
    rest = k.select(has_rest, rest, k.intrinsic("copysign", zero, y))
    down = k.intrinsic("floor", quotient)
    far = k.compare("ogt", k.binary("fsub", quotient, down), k.constant(0.5))
    down = k.select(far, k.binary("fadd", down, one), down)
    plain = k.binary("fdiv", x, y)
    down = k.select(k.compare("une", quotient, zero), down, k.intrinsic("copysign", zero, plain))
    by_zero = k.compare("oeq", y, zero)
    return k.select(by_zero, plain, down), k.select(by_zero, k.constant(math.nan), rest)


def _power(k: Simd, x: Name, y: Name) -> Name:
    for exponent, write in _POWERS.items():
        if y == k.constant(exponent):
            return write(k, x)
    return logarithms.power(k, x, y)


def _square_root(k: Simd, x: Name) -> Name:
    """As a power: 0 for -0, and infinite for both infinities."""
    root = k.x(k.intrinsic("sqrt", (k.x(x) + 0.0).name))
    return k.x(math.inf).where(k.x(x).is_("oeq", -math.inf), root).name


_POWERS: dict[float, Callable[[Simd, Name], Name]] = {
    4.0: lambda k, x: _POWERS[2.0](k, _POWERS[2.0](k, x)),
    3.0: lambda k, x: k.binary("fmul", _POWERS[2.0](k, x), x),
    2.0: lambda k, x: k.binary("fmul", x, x),
    0.5: _square_root,
    1.0: lambda k, x: x,
    -1.0: lambda k, x: k.binary("fdiv", k.constant(1.0), x),
    0.0: lambda k, x: k.constant(1.0),
}
"""Powers that need no logarithm."""


def logaddexp(k: Simd, x: Name, y: Name) -> Name:
    """max + log1p(exp(-|x - y|)); if both are the same infinity, that infinity."""
    if k.constant(0.0) in (x, y):  # it shares its exponential with the derivative
        return logarithms.softplus(k, y if x == k.constant(0.0) else x)
    a, b = k.x(x), k.x(y)
    rise = a - b
    top = k.x(maximum(k, x, y))
    tail = k.x(logarithms.log1p(k, exponentials.exp(k, (-abs(rise)).name)))
    same = k.logic("and", a.is_("oeq", b), k.compare("oeq", abs(a).name, k.constant(math.inf)))
    return a.where(same, top + tail).name


def _xlogy(of: Native) -> Native:
    """x f(y), and 0 where x = 0 and y is a number."""

    def write(k: Simd, x: Name, y: Name) -> Name:
        nothing = k.logic("and", k.compare("oeq", x, k.constant(0.0)), k.compare("ord", y, y))
        return k.select(nothing, k.constant(0.0), k.binary("fmul", x, of(k, y)))

    return write


def _logit(k: Simd, x: Name) -> Name:
    """log x - log1p(-x), and between ¼ and ¾, where these cancel, log1p(s) - log1p(-s) for s = 2 x - 1."""
    s = (k.x(x) - 0.5) * 2.0
    is_near = abs(s).is_("olt", 0.5)
    up = k.select(is_near, logarithms.log1p(k, s.name), logarithms.log(k, x))
    down = logarithms.log1p(k, (-s).where(is_near, -k.x(x)).name)
    return (k.x(up) - k.x(down)).name


def _scaled(factor: float) -> Native:
    return lambda k, x: k.binary("fmul", x, k.constant(factor))


def _negated(k: Simd, x: Name) -> Name:
    return (-k.x(x)).name


_WRITTEN: dict[str, Native] = {
    **{
        name: part
        for module in (exponentials, logarithms, trigonometry, special_functions)
        for name, part in vars(module).items()
        if isinstance(part, Part)
    },
    "negative": _negated,
    "same": lambda k, x: x,
    "square": lambda k, x: k.binary("fmul", x, x),
    "reciprocal": lambda k, x: k.binary("fdiv", k.constant(1.0), x),
    "where": lambda k, condition, x, y: k.select(condition, x, y),
    "maximum": maximum,
    "minimum": minimum,
    "clip": lambda k, x, low, high: minimum(k, maximum(k, x, low), high),
    "sign": _sign,
    "copysign": _instruction("intrinsic", "copysign"),
    "floor_divide": lambda k, x, y: _floor_and_rest(k, x, y)[0],
    "remainder": lambda k, x, y: _floor_and_rest(k, x, y)[1],
    "power": _power,
    "logaddexp": logaddexp,
    "degrees": _scaled(180.0 / math.pi),
    "radians": _scaled(math.pi / 180.0),
    "logit": _logit,
    "xlogy": _xlogy(logarithms.log),
    "xlog1py": _xlogy(logarithms.log1p),
    **{name: _instruction("binary", name) for name in ("fadd", "fsub", "fmul", "fdiv")},
    **{name: _instruction("intrinsic", name) for name in ("fabs", "floor", "ceil", "trunc", "rint", "sqrt")},
}
"""Entries that a row's `native` can name; any other name is a function of the C library."""


def _of_row(row: Rule) -> Native:
    name = row.native
    return name if callable(name) else _WRITTEN.get(name) or _instruction("called", name)


def native(rule: Rule) -> Native | None:
    """The function that writes a rule's value, or None."""
    write = NATIVE.get(rule)
    if write is None and rule.native is not None:
        write = NATIVE[rule] = _of_row(rule)  # a row that was added later
    return write


def kernel_of(rule: Rule) -> Kernel | None:
    """The kernel that computes a rule's value, if one does."""
    written = native(rule)
    return written.kernel if isinstance(written, Part) else None


def is_costly(rule: Rule, operands: Sequence[Name]) -> bool:
    """Whether a rule's value takes more time than moving its operands between registers."""
    if rule.native == "power":
        return operands[1] not in map(literal, _POWERS)
    return kernel_of(rule) is not None or rule.native in ("logaddexp", "logit")


NATIVE: dict[Rule, Native] = {
    POWER_OF_ABS: lambda k, x, p: _power(k, k.intrinsic("fabs", x), p),
    SIGNED_POWER: lambda k, x, p: k.intrinsic("copysign", _power(k, k.intrinsic("fabs", x), p), x),
    **{row: _of_row(row) for row in ROWS if row.native is not None},
    NUMBER: lambda k, x: k.number(x),
    WITH_SLOPE: lambda _k, y, _slope, _x: y,
    SAME: lambda k, x, y: k.code.emit(f"icmp eq {k.integer} {k.bits(x)}, {k.bits(y)}"),
    PREDICATES[np.less]: _instruction("compare", "olt"),
    PREDICATES[np.less_equal]: _instruction("compare", "ole"),
    PREDICATES[np.greater]: _instruction("compare", "ogt"),
    PREDICATES[np.greater_equal]: _instruction("compare", "oge"),
    PREDICATES[np.equal]: _instruction("compare", "oeq"),
    PREDICATES[np.not_equal]: _instruction("compare", "une"),
    PREDICATES[np.isnan]: lambda k, x: k.compare("uno", x, x),
    PREDICATES[np.isinf]: lambda k, x: k.compare("oeq", abs(k.x(x)).name, k.constant(math.inf)),
    PREDICATES[np.isfinite]: lambda k, x: k.compare("olt", abs(k.x(x)).name, k.constant(math.inf)),
    PREDICATES[np.signbit]: lambda k, x: k.code.emit(f"icmp slt {k.integer} {k.bits(x)}, {k.whole(0)}"),
    LOGIC[np.logical_and]: _instruction("logic", "and"),
    LOGIC[np.logical_or]: _instruction("logic", "or"),
    LOGIC[np.logical_xor]: _instruction("logic", "xor"),
    LOGIC[np.logical_not]: lambda k, x: k.logic("xor", x, k.truth),
}
"""Rule -> the function that writes its value."""
