"""The lowest floating-point type through which a function's active numbers pass, given inputs in float64.

A function may convert to float32 or bfloat16 on the way, and back. Its derivatives then have the digits of that type.
jax's program is examined, torch's operations are watched, and of numpy and autograd the arrays made from the inputs.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

from adbench.oracle.evidence import PRECISIONS, Precision

WIDENS: ContextVar[bool] = ContextVar("widens", default=False)
"""Whether a translated function's types below float64 count as float64, so that a conversion changes nothing; otherwise
they are refused."""

LESS = re.compile(r"float32|float16|bfloat16|complex64|float8\w*")
PARTS = {"complex64": "float32"}
LEAST = "bfloat16"
"""For types with fewer bits still, such as float8."""


@dataclass(frozen=True)
class Low:
    """A type below float64, and the line that computes in it, or ""."""

    name: str
    place: str = ""

    @property
    def precision(self) -> Precision:
        """Its arithmetic."""
        return PRECISIONS.get(PARTS.get(self.name, self.name), PRECISIONS[LEAST])

    @property
    def told(self) -> str:
        """For a note below the table."""
        where = f" ({self.place})" if self.place else ""
        return f"computes in {self.name} on the way{where}: judged with {self.name}'s tolerance"


def as_decomposed(matrix: Any) -> Any:
    """A matrix of float64 or complex128 as libraries decompose it; where `WIDENS`, in the only type below, 32 bits."""
    return matrix.astype("F" if matrix.dtype.kind == "c" else "f") if WIDENS.get() else matrix


def low_type(dtype: Any) -> str:
    """The name of a floating-point type below float64; "" for any other type."""
    name = str(dtype).rpartition(".")[2]
    return name if LESS.fullmatch(name) else ""


def low_of(given: Any) -> Low | None:
    """The type below float64 of a number, an array or a tensor, or None. A Python float takes its partner's type."""
    name = low_type(getattr(given, "dtype", ""))
    return Low(name) if name else None


def lowest_inside(
    library: str, call: Callable[[Sequence[Any]], Any], leaves: Sequence[Any], ran: Iterable[CodeType] = ()
) -> Low | None:
    """The lowest type on the way from these leaves, float64 in numpy, to the value; None if all is float64.

    Leaves may be tensors of torch in other types, which `torch.autocast` lowers; it leaves float64 unchanged.
    Where the function cannot be examined, because jax cannot trace it or it takes no subclass of numpy's arrays, the
    names in the code that `ran` decide.
    """
    examine = {"jax": _of_jax, "torch": _of_torch, "numpy": _of_numpy, "autograd": _of_numpy}.get(library)
    found: list[Low] = []
    if examine is not None:
        try:
            with np.errstate(all="ignore"):
                found.extend(examine(call, leaves))
        except Exception:  # it works without being examined: it was called before
            words = {word for code in ran for word in (*code.co_names, *code.co_consts) if isinstance(word, str)}
            found = [Low(word) for word in sorted(words) if low_type(word)]
    return max(found, key=lambda low: low.precision.unit, default=None)


def widened(value: Any) -> Any:
    """An array or tensor below float64, in float64; other values unchanged."""
    if not low_type(getattr(value, "dtype", "")):
        return value
    double = "complex128" if "complex" in str(value.dtype) else "float64"
    if type(value).__module__.partition(".")[0] == "torch" or hasattr(value, "requires_grad"):
        return value.to(getattr(sys.modules["torch"], double))
    if type(value).__module__.partition(".")[0] == "autograd":  # whose adjoint of astype takes no Python float
        return value * getattr(np, double)(1)
    return value.astype(double)


# jax -------------------------------------------------------------------------------------------------------------


def jax_in_double(wide: bool = True) -> contextlib.AbstractContextManager[Any]:
    """A block in which jax computes in float64 by default, or in float32; jax has the function since 0.8."""
    jax = importlib.import_module("jax")
    where = jax if hasattr(jax, "enable_x64") else importlib.import_module("jax.experimental")
    block: contextlib.AbstractContextManager[Any] = where.enable_x64(wide)
    return block


def _of_jax(call: Callable[[Sequence[Any]], Any], leaves: Sequence[Any]) -> Iterator[Low]:
    jax = importlib.import_module("jax")
    with jax_in_double():
        jaxpr = jax.make_jaxpr(lambda *given: call(given))(*map(np.asarray, leaves)).jaxpr
    yield from _in_jaxpr(jaxpr, [True] * len(jaxpr.invars))


def _in_jaxpr(jaxpr: Any, active: Sequence[bool]) -> Iterator[Low]:
    """The low types of values that depend on the active inputs, through floating-point numbers only."""
    depends = {var for var, is_active in zip(jaxpr.invars, active, strict=True) if is_active}
    for equation in jaxpr.eqns:
        given = [not hasattr(atom, "val") and atom in depends for atom in equation.invars]
        if not any(given):
            continue
        for var in equation.outvars:
            name = str(getattr(var.aval, "dtype", ""))
            if name.startswith(("float", "bfloat", "complex")):
                depends.add(var)
            if low_type(name):
                yield Low(name, user_line(lines_of(equation)))
        for inner in jaxprs_in(equation.params):
            yield from _in_jaxpr(inner, _active_inside(equation, inner, given))


def _active_inside(equation: Any, inner: Any, given: Sequence[bool]) -> Sequence[bool]:
    """Which inputs of an inner jaxpr depend on active ones: those of a call do if its own do, of a loop the carried."""
    params, count = equation.params, len(inner.invars)
    if equation.primitive.name == "scan":
        first, carry = scan_counts(params)
        return [*given[:first], *[True] * carry, *given[first + carry :]]
    if equation.primitive.name == "cond":
        return given[1:] if count == len(given) - 1 else [True] * count
    return given if count == len(given) else [True] * count


def scan_counts(params: Mapping[str, Any]) -> tuple[int, int]:
    """The numbers of constants and of carried values of jax's `scan`; from jax 0.12 on, `ft_in` has them."""
    if "ft_in" not in params:
        return params["num_consts"], params["num_carry"]
    constants, carried, _ = params["ft_in"].unpack()
    return len(constants), len(carried)


def jaxprs_in(params: Any) -> Iterator[Any]:
    """The jaxprs in an equation's parameters."""
    for part in params.values():
        for one in part if isinstance(part, tuple | list) else (part,):
            opened = getattr(one, "jaxpr", one)
            if hasattr(opened, "eqns"):
                yield opened


def lines_of(equation: Any) -> list[tuple[str, int]]:
    """File and line of every Python frame that traced a jax equation, the innermost first."""
    traced = getattr(getattr(equation, "source_info", None), "traceback", None)
    return [(frame.file_name, frame.line_num) for frame in getattr(traced, "frames", ())]


# torch -----------------------------------------------------------------------------------------------------------


def _of_torch(call: Callable[[Sequence[Any]], Any], leaves: Sequence[Any]) -> Iterator[Low]:
    torch = importlib.import_module("torch")
    stance = torch.compiler.set_stance("force_eager") if "torch._dynamo" in sys.modules else contextlib.nullcontext()
    watching = importlib.import_module("adbench.functions.from_torch.watching").Watching

    def watched(native: Sequence[Any]) -> Any:
        with stance, watching(native) as seen:
            call(native)
        return seen.types

    return iter([Low(low_type(dtype), place) for dtype, place in of_tensors(watched, leaves).items()])


def of_tensors(call: Callable[[Sequence[Any]], Any], leaves: Sequence[Any]) -> Any:
    """The call of these leaves as tensors of float64, which record derivatives if the function contains some. Leaves
    that are tensors keep their types."""
    torch = importlib.import_module("torch")

    def native_of(leaf: Any) -> Any:
        return leaf.detach() if hasattr(leaf, "detach") else torch.tensor(np.asarray(leaf), dtype=torch.float64)

    native = [native_of(leaf) for leaf in leaves]
    try:
        return call(native)
    except RuntimeError as error:
        if "does not require grad" not in str(error):
            raise
        return call([leaf.requires_grad_() for leaf in native])


# numpy -----------------------------------------------------------------------------------------------------------


class Watched(np.ndarray):
    """An array that notes the low types of arrays made from it."""

    seen: dict[str, str]

    def __array_finalize__(self, made_from: Any) -> None:
        """Called for each new array."""
        seen = getattr(made_from, "seen", None)
        if seen is not None:
            self.seen = seen
            if low_type(self.dtype):
                seen.setdefault(str(self.dtype), user_line(running_lines()))


def _of_numpy(call: Callable[[Sequence[Any]], Any], leaves: Sequence[Any]) -> Iterator[Low]:
    seen: dict[str, str] = {}
    given = []
    for leaf in leaves:
        watched = np.array(leaf, dtype=np.float64).view(Watched)
        watched.seen = seen
        given.append(watched)
    call(given)
    return iter([Low(name, place) for name, place in seen.items()])


def running_lines() -> Iterator[tuple[str, int]]:
    """File and line of every Python frame that runs now, the innermost first."""
    return ((frame.f_code.co_filename, line) for frame, line in traceback.walk_stack(sys._getframe()))


def user_line(lines: Iterable[tuple[str, int]]) -> str:
    """The first of these files and lines in a user's code, as "mine.py, line 5", or ""."""
    named = (f"{Path(file).name}, line {line}" for file, line in lines if is_of_user(file) and file[:1] != "<")
    return next(named, "")


def is_of_user(file: str) -> bool:
    """Whether it has user code: neither a library's nor ours."""
    package = Path(__file__).parents[1]
    ours = (str(package), str(package.parent / "backends"), "<frozen", str(Path(contextlib.__file__).parent))
    return not file.startswith(ours) and "site-packages" not in file
