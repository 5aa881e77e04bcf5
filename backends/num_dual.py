"""num-dual: dual numbers from Rust in numpy arrays of objects; forward mode, all directions at once."""

from __future__ import annotations

import operator as python
from collections.abc import Callable
from typing import Any

import num_dual
import numpy as np

from adbench import Namespace, Operator, Unsupported

from ._flat import on_numbers

REQUIRES = ("num-dual",)
LICENCE = "MIT OR Apache-2.0"

# Known faults. A bare outcome such as "nan" refers to the reason in the trap's `faults`.
KNOWN = {
    "trap_clip_difference": "2: both sides of the kinks contribute",
    "trap_equality_branch": "0",
    "trap_exp_of_log": "nan",
    "trap_half_square_norm": "nan: 0 · inf where sqrt is vertical (as pytorch/pytorch#2421)",
    "trap_half_square_root": "nan (as pytorch/pytorch#2421)",
    "trap_log1p_exp_overflow": "nan",
    "trap_logistic_far": "0",
    "trap_logistic_tail": "nan",
    "trap_norm_at_zero": "nan",
    "trap_p_norm_zero_entry": "nan, in the value too: x^1.5 as x³ x^-1.5, which is 0 · inf at 0",
    "trap_power_both": "nan: x^y as exp(y log x), which is 0/0 at 0 (as martinjrobins/diffsl#138)",
    "trap_power_three_halves": "nan, in the value too: x^1.5 as x³ x^-1.5, which is 0 · inf at 0",
    "trap_relu_difference": "2",
    "trap_square_of_angle": "nan",
    "trap_square_of_sqrt": "nan",
    "trap_x_sqrt_x": "nan",
    # Second order: the key ends with the operators that fail.
    "trap_masked_sinc hvp hessian": "0",
}

PLAIN = (float, int, np.floating, np.integer)
REAL = {"float", "int", "bool"}
COMPARISONS = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}


def is_dual(x: Any) -> bool:
    return hasattr(type(x), "from_re")


def power(x: Any, y: Any) -> Any:
    """x^y, also for a plain base, which num_dual lacks."""
    if is_dual(x) or not is_dual(y):
        return x**y
    return y * 0.0 if x == 0.0 and y > 0.0 else (y * float(np.log(x))).exp()


def absolute(x: Any) -> Any:
    return -x if x < 0.0 else x


def least(x: Any, y: Any) -> Any:
    return x if x <= y or x != x else y


def largest(x: Any, y: Any) -> Any:
    return x if x >= y or x != x else y


OURS = {
    "power": np.frompyfunc(power, 2, 1),
    "absolute": np.frompyfunc(absolute, 1, 1),
    "minimum": np.frompyfunc(least, 2, 1),  # numpy loses a NaN in arrays of objects
    "maximum": np.frompyfunc(largest, 2, 1),
}


def bare(x: Any) -> Any:
    """Unwrap to num_dual's numbers, alone or in plain arrays."""
    if isinstance(x, Number):
        return x.dual
    if isinstance(x, np.ndarray):
        return x.view(np.ndarray)
    return type(x)(map(bare, x)) if type(x) in (list, tuple) else x


def dressed(x: Any) -> Any:
    """Wrap numpy's result in `Duals` or `Number`."""
    if isinstance(x, np.ndarray):
        return dressed(x[()]) if not x.ndim else x.view(Duals) if x.dtype == object else x
    return Number(x) if is_dual(x) else x


def lifted(x: Any, like: Any) -> Any:
    """Convert the plain numbers of a mixed array, from `where` or `concat`, to dual numbers."""
    if like is None:
        return x.astype(np.float64)
    return np.frompyfunc(lambda entry: entry if is_dual(entry) else type(like).from_re(float(entry)), 1, 1)(x)


def applied(function: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Apply a numpy function entry by entry with num_dual's operators and methods: np.sin(x) is x.sin()."""
    plain = [np.asarray(part, dtype=object) for part in map(bare, inputs)]
    options = {key: bare(option) for key, option in options.items()}
    if function.__name__ in COMPARISONS:
        return np.asarray(getattr(function, method)(*plain, **options), dtype=bool)[()]
    run = getattr(OURS.get(function.__name__, function), method)
    try:
        return dressed(run(*plain, **options))
    except (TypeError, AttributeError):
        like = next((entry for part in plain for entry in part.ravel() if is_dual(entry)), None)
    try:
        return dressed(run(*(lifted(part, like) for part in plain), **options))
    except (TypeError, AttributeError) as error:
        others = {type(entry).__name__ for part in plain for entry in part.ravel() if not is_dual(entry)} - REAL
        raise Unsupported(" of ".join((f"num_dual has no {function.__name__}", *sorted(others)))) from error


def moved(function: Any, args: Any, options: Any) -> Any:
    """Apply a function that numpy writes in Python."""
    try:
        return dressed(function(*map(bare, args), **{key: bare(option) for key, option in options.items()}))
    except (TypeError, AttributeError) as error:  # numpy and Python raise these for a missing operation
        raise Unsupported(f"num_dual has no {function.__name__}, and numpy has none for objects") from error


class Number:
    """One dual number that leaves arrays to numpy; num_dual's would write into an array that it multiplies."""

    __slots__ = ("dual",)

    def __init__(self, dual: Any) -> None:
        self.dual = dual

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return applied(function, method, inputs, options)

    def __array_function__(self, function: Any, _: Any, args: Any, options: Any) -> Any:
        return moved(function, args, options)

    shape, ndim, size = (), 0, 1

    def __neg__(self) -> Any:
        return Number(-self.dual)

    def __bool__(self) -> bool:
        return bool(self.dual != 0.0)


def arithmetic(name: str, function: np.ufunc, wrap: Callable[[Any], Any]) -> None:
    """Add an operator to Number: direct for numbers, by numpy for arrays."""
    of_duals = power if name == "pow" else getattr(python, f"__{name}__")

    def forwards(self: Any, other: Any) -> Any:
        if isinstance(other, Number):
            return wrap(of_duals(self.dual, other.dual))
        return wrap(of_duals(self.dual, float(other))) if isinstance(other, PLAIN) else function(self, other)

    def backwards(self: Any, other: Any) -> Any:
        return wrap(of_duals(float(other), self.dual)) if isinstance(other, PLAIN) else function(other, self)

    setattr(Number, f"__{name}__", forwards)
    setattr(Number, f"__r{name}__", backwards)


OPERATORS: dict[str, tuple[np.ufunc, Callable[[Any], Any]]] = {
    "add": (np.add, Number),
    "sub": (np.subtract, Number),
    "mul": (np.multiply, Number),
    "truediv": (np.divide, Number),
    "pow": (np.power, Number),
    "lt": (np.less, bool),
    "le": (np.less_equal, bool),
    "gt": (np.greater, bool),
    "ge": (np.greater_equal, bool),
    "eq": (np.equal, bool),
    "ne": (np.not_equal, bool),
}
for name, how in OPERATORS.items():
    arithmetic(name, *how)


class Duals(np.ndarray[Any, Any]):
    """An array of num_dual's numbers that returns entries as `Number`."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return applied(ufunc, method, inputs, options)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return moved(func, args, kwargs)

    def __getitem__(self, index: Any) -> Any:
        return dressed(super().__getitem__(index))

    def __iter__(self) -> Any:
        return map(dressed, super().__iter__())


def vector_norm(x: Any, *, axis: int | None = None, ord: float = 2) -> Any:
    return np.sum(np.abs(x) ** ord, axis=axis) ** (1 / ord) if ord != 2 else np.sqrt(np.sum(x * x, axis=axis))


def reduction(name: str) -> Callable[..., Any]:
    def reduced(x: Any, *, axis: int | None = None, keepdims: bool = False) -> Any:
        return dressed(OURS[name].reduce(np.asarray(bare(x), dtype=object), axis=axis, keepdims=keepdims))

    return reduced


def stop_gradient(x: Any) -> Any:
    plain = np.frompyfunc(lambda entry: entry.value if is_dual(entry) else entry, 1, 1)
    return np.asarray(plain(bare(x)), dtype=np.float64)[()]


def derivative(*_: Any) -> Any:
    raise Unsupported("num_dual nests dual numbers in Rust, not in Python")


xp = Namespace(
    np,
    linalg={"vector_norm": vector_norm},
    min=reduction("minimum"),
    max=reduction("maximum"),
    asarray=lambda x: dressed(np.asarray(bare(x))),
    derivative=derivative,
    stop_gradient=stop_gradient,
)


def values(g: Callable[[Any], Any], x: list[Any]) -> list[Any]:
    """The values of g as dual numbers, also if g does not depend on x."""
    lift = type(x[0]).from_re
    entries = np.asarray(bare(g(x)), dtype=object).ravel()
    return [entry if is_dual(entry) else lift(float(entry)) for entry in entries]


def jvp(g: Callable[[Any], Any], x: list[float], v: list[float]) -> Any:
    found = values(g, [num_dual.Dual64(a, b) for a, b in zip(x, v, strict=True)])
    return [part.first_derivative for part in found]


def hvp(g: Callable[[Any], Any], x: list[float], v: list[float]) -> Any:
    def along(t: list[Any], x: list[Any]) -> Any:  # ∂²/∂t∂x g(x + t v)
        return values(g, [a + t[0] * b for a, b in zip(x, v, strict=True)])[0]

    return num_dual.partial_hessian(along, [0.0], x)[3][0]


OPERATIONS: dict[Operator, Callable[..., Any]] = {  # for functions of a list of numbers
    "gradient": lambda g, x: num_dual.gradient(lambda y: values(g, y)[0], x)[1],
    "value_and_gradient": lambda g, x: num_dual.gradient(lambda y: values(g, y)[0], x),
    "jacobian": lambda g, x: num_dual.jacobian(lambda y: values(g, y), x)[1],
    "jvp": jvp,
    "hvp": hvp,
    "hessian": lambda g, x: num_dual.hessian(lambda y: values(g, y)[0], x)[2],
}


NESTED = "num_dual's numbers hold floats and cannot be nested; hyper-dual numbers carry both derivatives at once"


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    if operator == "value":
        return f
    if operator not in OPERATIONS:
        raise Unsupported(f"num_dual has forward mode only, no {operator}")
    return on_numbers(OPERATIONS[operator], operator, f, wrt, dressed)
