"""A user's function as a case: checked by `adbench.check`, the command line and `adbench.run`.

Seed 0 is the user's point. Other seeds are points around it and special ones (points.py).
"""

from __future__ import annotations

import contextlib
import copy
import io
import linecache
import re
import sys
import textwrap
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from itertools import takewhile
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Literal

import numpy as np

from adbench.functions import user_arguments
from adbench.functions.libraries import (
    FORWARD_NAMES,
    LIBRARIES,
    Library,
    double_precision,
    forward_codes,
    import_library,
    in_double,
    library_name_of_value,
    raised_in_callback,
    translator_of,
)
from adbench.functions.low_precision import (
    WIDENS,
    Low,
    is_of_user,
    low_of,
    low_type,
    lowest_inside,
    running_lines,
    widened,
)
from adbench.functions.outputs import Output, outputs_of
from adbench.functions.points import following, moved, name_of_point, symmetric_inputs, with_symmetric
from adbench.functions.recognition import libraries_with, library_of, takes_xp
from adbench.functions.user_arguments import Arguments, Leaf, Wrt, arguments_of, name_of
from adbench.model import tree
from adbench.model.case import Case
from adbench.model.errors import AdbenchError, Unsupported, UsageError, contained, user_exit
from adbench.model.namespace import PLAIN
from adbench.oracle.evidence import DOUBLE, Precision, lowest, within

Constants = Literal["allow", "forbid"]
"""What becomes of numbers that a function declares constant, as by `detach`."""

STOPS = ("detach", "stop_gradient", "no_grad", "inference_mode")
"""Names of functions that make a number constant for derivatives."""

DRAWS = {"rand", "randn", "rand_like", "randn_like", "normal", "normal_", "uniform_", "exponential_", "cauchy_"}
"""Names of torch's functions that draw other numbers from the same seed in each type."""

MOST_TEXT = 60
"""Characters of a line of code in a message."""

BY_ROUNDING = 1e3
"""The most unit roundoffs of the largest number by which two calls of a function may differ that is not random."""
MOST_BY_ROUNDING = 0.1
"""The same as a share of the largest number, for types of 16 bits."""

_DRAWS_OF_JAX = re.compile(r"[/\\]jax[/\\]_src[/\\]random\b")
COPIED = "the function runs with float64 copies of these objects"
_LIBRARY = re.compile(
    r"(site|dist)-packages[/\\](jax|jaxlib|torch|numpy|scipy|autograd)[/\\]|[/\\]adbench[/\\]functions[/\\]"
)


def function_case(
    f: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    wrt: Wrt = None,
    *,
    seed: int = 0,
    backend: str | None = None,
    output: Output = None,
    branchwise: bool = False,
    constants: Constants = "allow",
) -> Case:
    """The case of ``f(*args, **kwargs)``, with one size. Its inputs are the floating-point leaves of the arguments.

    f        returns a number or an array, or several in a container; written for jax, torch, autograd, adbench.tape
             or numpy, or with a first parameter `xp` for all of them
    args     floats, arrays of any of these libraries, nested containers and torch.nn.Module; the rest is static
    wrt      the active arguments: positions, names (``x``, ``params['w']``); by default all
    seed     chooses the random points
    backend  the backend that the user named; it decides the library of a function that shows none
    output   the position, key or path of the only output that is checked
    branchwise   accept the derivative along the program's branch, even if the values contradict it
    constants    "forbid": numbers that the function declares constant are active all the same

    The case's `f` is a `UserFunction`. Raises UsageError with one line if the function cannot be checked.
    """
    library = library_of(f, args, kwargs, backend)
    try:
        function, value = _probed(f, library, args, kwargs or {}, wrt, output)
    except UsageError as refusal:
        for other in libraries_with(refusal.__cause__, library, backend):
            with contextlib.suppress(UsageError):
                function, value = _probed(f, other, args, kwargs or {}, wrt, output)
                break
        else:
            raise
    if function.library.name == "numpy" and (returned := LIBRARIES.get(library_name_of_value(value))) is not None:
        # It calls a package built on another library without naming that library or taking its arrays.
        function, value = _probed(f, returned, args, kwargs or {}, wrt, output)
    function.refuse_complex(backend or function.library.backend)
    function.branchwise, function.constants, function.shape = branchwise, constants, np.shape(value)
    active = function.arguments.active
    leaves_at = cache(lambda number: function.leaves_at(number, seed))

    def inputs(n: int, rng: np.random.Generator) -> dict[str, Any]:
        entropy = getattr(rng.bit_generator.seed_seq, "entropy", 0)
        number = int(entropy[0]) if isinstance(entropy, Sequence) else 0
        return {name: leaf.copy() if isinstance(leaf, np.ndarray) else leaf for name, leaf in leaves_at(number).items()}

    case = Case(f=function, inputs=inputs, wrt=active, sizes=(1,), name=function.__name__, summary=function.__name__)
    return replace(case, operators=("value", "jacobian")) if np.shape(value) else case


def _probed(
    f: Callable[..., Any], library: Library, args: Sequence[Any], kwargs: Mapping[str, Any], wrt: Wrt, output: Output
) -> tuple[UserFunction, Any]:
    """The function in this library, and its value at the given point. Raises UsageError as `UserFunction.probed`."""
    import_library(library)
    copied = tuple[str, ...]()

    def arguments(place: Any = "cpu") -> Arguments:
        nonlocal copied
        own = f
        if library.name == "torch":
            from adbench.functions.from_torch.float64_copies import in_float64

            own, copied = in_float64(f, place)
        return arguments_of(own, args, kwargs, wrt, xp=takes_xp(f), place=place)

    function = UserFunction(f, library, arguments(), cache(arguments))
    if copied:
        function.notes.append(f"{COPIED}: {', '.join(copied)}")
    return function, function.probed(output)


class UserFunction:
    """``f(xp, **inputs)`` of a case: the user's function of its floating-point leaves.

    On plain numpy it runs in its library in float64; on the oracle's numbers its translation runs; on other inputs the
    function itself, on their device. See `library`, `arguments` and `notes`.
    """

    def __init__(
        self, f: Callable[..., Any], library: Library, arguments: Arguments, there: Callable[[Any], Arguments]
    ) -> None:
        self.f, self.library, self.arguments, self._there = f, library, arguments, there
        self.__name__ = name_of(f)
        self.notes: list[str] = list(arguments.notes)
        self.prints = self.branchwise = False
        self.constants: Constants = "allow"
        self.shape: tuple[int, ...] = ()  # of the value
        self._plain = in_double(library, arguments.call)
        self.low: Low | None = None  # inside, given float64
        self.low_argument: Low | None = None  # if arguments keep their types
        self.types: Mapping[str, Precision] = {}  # of arguments below float64
        self.typed: Arguments | None = None  # if they keep their types
        self._refused = ""
        self._ran: set[CodeType] = set()
        self._forwards: set[CodeType] = set()
        self._texts: dict[bytes, Callable[..., Any] | Unsupported] = {}

    @property
    def translated(self) -> bool:
        """Whether the reference comes from a translation, which may be wrong even if the function is correct."""
        return self.library.translator is not None and not self._refused

    @property
    def precision(self) -> Precision:
        """The lowest arithmetic on the way from the inputs, float64, to the value."""
        return lowest(*(low.precision for low in (self.low, self.low_argument) if low), DOUBLE)

    def keep_types(self, arguments: Arguments, low: Low | None) -> None:
        """Results are computed in the arguments' own types, `low` the lowest. Points are numbers of them."""
        gone = (*self.arguments.notes, COPIED)
        self.notes = [note for note in self.notes if not note.startswith(gone)]
        self.low_argument, self.typed = low, arguments
        given = zip(arguments.names, arguments.given, strict=True)
        lows = ((name, low_of(like)) for name, like in given)
        self.types = {name: low.precision for name, low in lows if low is not None}

    def refuse_complex(self, backend: str) -> None:
        """Raise UsageError for complex arguments or results that the engine would have to differentiate."""
        outputs = self.arguments.outputs
        if backend.partition("_")[0] != "tape" or not (self.arguments.complex or (outputs and outputs.complex)):
            return
        takes, returns = "name the real arguments in wrt", "return real and imaginary parts"
        verb, advice = ("takes", takes) if self.arguments.complex else ("returns", returns)
        raise UsageError(
            f"{self.__name__} {verb} complex numbers, and {backend} computes with real ones; write it for jax, torch "
            f"or autograd, or {advice}"
        )

    def untranslated(self, why: str) -> UserFunction:
        """The function as a black box, for this reason."""
        made = copy.copy(self)
        made._refused = why
        return made

    def __call__(self, xp: Any, /, **inputs: Any) -> Any:
        """The value, in the inputs' number type. Raises UserExit for SystemExit, which would pass by our handlers."""
        try:
            return self._value(xp, inputs)
        except SystemExit as leaving:
            raise user_exit(leaving) from leaving

    def _value(self, xp: Any, inputs: Mapping[str, Any]) -> Any:
        leaves = tuple(inputs.values())
        if self.library.name == "xp":
            return self.arguments.call(leaves, xp)
        if all(map(_is_plain, leaves)):
            return self._plain(*leaves)
        if any(map(_is_of_oracle, leaves)):
            return self.text(leaves)(xp, *leaves)
        value = self._placed_like(leaves).call(leaves)
        return widened(value) if self.low else value

    def _placed_like(self, leaves: Sequence[Any]) -> Arguments:
        """The arguments, whose other tensors and modules are on the device of these leaves."""
        of_torch = leaves if self.library.name == "torch" else ()
        place = next((leaf.device for leaf in of_torch if hasattr(leaf, "device") and leaf.device.type != "cpu"), None)
        return self.arguments if place is None else replace(self._there(place), outputs=self.arguments.outputs)

    def plain(self, leaves: Sequence[Leaf]) -> Any:
        """The value in numpy, computed by the function's library in float64."""
        return self(PLAIN, **dict(zip(self.arguments.names, leaves, strict=True)))

    def probed(self, chosen: Output = None) -> Any:
        """The value at the given point, or its chosen output.

        Raises UsageError if it is not a number or an array, or several, or not deterministic.
        """
        first_arguments = (PLAIN,) if self.library.name == "xp" else ()
        types = set[str]()

        def called(leaves: Sequence[Any]) -> Any:
            value = self.arguments.watched(leaves, *first_arguments)
            parts = outputs_of(value, chosen, self.library.name, self.__name__)
            if parts is not None:
                value = parts.of(value, *first_arguments)
                self.arguments = replace(self.arguments, outputs=parts)
                self._plain = in_double(self.library, self.arguments.call)
            types.add(low_type(getattr(value, "dtype", "")))
            return value

        watched = in_double(self.library, called)
        output = _Output()
        with double_precision(), np.errstate(all="ignore"):
            try:
                with contained(), contextlib.redirect_stdout(output), _recording(self._ran, self._forwards):
                    first = watched(*self.arguments.values)
                self.prints = output.used
                with contained(), self.silent():
                    second = self.plain(self.arguments.values)
            except AdbenchError:
                raise
            except Exception as error:
                raise UsageError(f"{self.__name__} raises {told(error)}{_hint(error, self.notes)}") from error
        _refuse_value(first, self.__name__)
        if not np.array_equal(np.asarray(first), np.asarray(second), equal_nan=True):
            form = lowest(DOUBLE, *(Low(name).precision for name in types if name))
            self._refuse_random(np.asarray(first), np.asarray(second), form)
        with double_precision(), self.silent():
            own = (code for code in self._ran if not _LIBRARY.search(code.co_filename))
            inside = lowest_inside(self.library.name, self.arguments.call, self.arguments.values, own)
            self.low = inside or next(map(Low, filter(None, types)), None)
        if self.low:
            self.notes.append(self.low.told)
        if self.arguments.outputs is not None:
            self.notes.append(self.arguments.outputs.note)
        if self.prints:
            self.notes.append("the function prints; its output is shown once")
        return first

    def _refuse_random(self, first: Any, second: Any, form: Precision) -> None:
        """Raise UsageError if two values differ by more than rounding in another order explains."""
        within = BY_ROUNDING * form.unit * float(np.max(np.abs(first[np.isfinite(first)]), initial=0.0))
        if first.shape == second.shape and np.allclose(first, second, rtol=0.0, atol=within, equal_nan=True):
            self.notes.append("two calls at the same point differ, by no more than rounding")
            return
        advice = "seed its generator inside the function, or pass the random numbers as an argument"
        if self.arguments.is_in_training:
            advice = "call .eval() on the module first, because layers such as dropout are random in training"
        elif "torch" in self.library.name:
            advice = f"call .eval() on a module with dropout or a buffer that each call changes, {advice}"
        both = f"{_short(first)} and {_short(second)}"
        raise UsageError(f"{self.__name__} is random: two calls at the same point gave {both}; {advice}")

    def is_defined(self, leaves: Sequence[Leaf]) -> bool:
        """Whether the function has a finite real value at these leaves."""
        try:
            with contained(), double_precision(), np.errstate(all="ignore"), self.silent():
                value = self.plain(leaves)
            return bool(np.isfinite(value).all()) and not np.iscomplexobj(value)
        except (AdbenchError, MemoryError):
            raise
        except Exception:  # it rejects such numbers
            return False

    def leaves_at(self, number: int, seed: int) -> dict[str, Leaf]:
        """The leaves by name at the point with this number; 0 is the given point, and `seed` chooses the others."""
        given, active = dict(zip(self.arguments.names, self.arguments.values, strict=True)), self.arguments.active
        if number == 0:
            return given

        def there(leaves: Sequence[Leaf]) -> dict[str, Leaf]:
            point = with_symmetric(given | dict(zip(active, leaves, strict=True)), self._symmetric)
            if self.arguments.complex:
                from adbench.functions.complex_arguments import with_hermitian  # not at the top: few are complex

                point = with_hermitian(point, given, self.arguments.complex)
            return {name: _in_type(leaf, self.types.get(name, DOUBLE)) for name, leaf in point.items()}

        def is_inside(leaves: Sequence[Leaf]) -> bool:
            return self.is_defined(list(there(leaves).values()))

        return there(moved([given[name] for name in active], number, seed, is_inside))

    @cached_property
    def _symmetric(self) -> Collection[str]:
        return symmetric_inputs(self, self.arguments, self.shape)

    def point_name(self, number: int) -> str:
        """The name of the point with this number: "the given point", "mixed signs", "random point 5", ..."""
        return name_of_point(number, self._entries)

    def following(self, number: int) -> int:
        """The number of a later point that has the signs of the given one."""
        return following(number, self._entries)

    @property
    def _entries(self) -> int:
        given = dict(zip(self.arguments.names, self.arguments.values, strict=True))
        return sum(np.size(given[name]) for name in self.arguments.active)

    @property
    def stops(self) -> str:
        """The function in the executed code that stops derivatives, or "". Values do not show it.

        Library code is ignored, because its softmax stops only terms that add nothing to a derivative, and so is the
        forward of a `torch.autograd.Function`, where torch records nothing.
        """
        theirs = (code for code in self._ran - self._forwards if not _LIBRARY.search(code.co_filename))
        names = {name for code in theirs for name in code.co_names}
        return next((name for name in STOPS if name in names), "")

    def draws_otherwise(self, call: Callable[[], Any], form: Precision) -> bool:
        """Whether it draws random numbers, which are others where `call` computes, in this type: its value differs."""
        of_jax = any(_DRAWS_OF_JAX.search(code.co_filename) for code in self._ran)
        if not of_jax and not any(DRAWS.intersection(code.co_names) for code in self._ran):
            return False
        with np.errstate(all="ignore"), self.silent():
            plain = np.asarray(self.plain(self.arguments.values))
            most = min(BY_ROUNDING * form.unit, MOST_BY_ROUNDING) * float(np.max(np.abs(plain), initial=0.0))
            try:
                value = call()
            except Exception:  # reported by the derivative, which raises it too
                return False
        return not np.allclose(plain, value, rtol=0.0, atol=most, equal_nan=True)

    def place(self) -> str:
        """The line of the user's code that runs now, on numbers of the oracle: "mine.py, line 5"; "" if unknown."""
        file, line = self._running
        return f"{Path(file).name}, line {line}" if file else ""

    def line(self) -> str:
        """The same with its text."""
        text = linecache.getline(*self._running).strip()
        return " ".join(filter(None, (self.place(), f"`{textwrap.shorten(text, MOST_TEXT)}`" if text else "")))

    @property
    def _running(self) -> tuple[str, int]:
        is_jax = self.library.name == "jax"
        lines = sys.modules["adbench.functions.from_jax.jaxprs"].traced_lines() if is_jax else running_lines()
        inside = takewhile(lambda one: one[0] != user_arguments.__file__, lines)  # which calls the function
        return next(((file, line) for file, line in inside if is_of_user(file)), ("", 0))

    def is_of_value(self, error: BaseException) -> bool:
        """Whether an exception comes from code that computes the value, not from a derivative rule."""
        found = _innermost(error)
        return found is not None and found[0] in self._ran

    def silent(self) -> contextlib.AbstractContextManager[Any]:
        """A context in which a printing function is silent, because it is called many times."""
        return contextlib.redirect_stdout(io.StringIO()) if self.prints else contextlib.nullcontext()

    def text(self, leaves: Sequence[Any]) -> Callable[..., Any]:
        """text(xp, *leaves): the function on the oracle's numbers, translated at the point of these leaves.

        Raises Unsupported with the reason if it cannot be translated.
        """
        if self._refused:
            raise Unsupported(self._refused)
        examples = [_example(leaf) for leaf in leaves]
        key = b"|".join(np.asarray(example).tobytes() for example in examples)
        if key not in self._texts:
            try:
                with double_precision():
                    self._texts[key] = self._translated(examples)
            except Unsupported as refusal:
                self._texts[key] = refusal
        found = self._texts[key]
        if isinstance(found, Unsupported):
            raise found
        return found

    def _translated(self, examples: Sequence[Leaf]) -> Callable[..., Any]:
        translate = translator_of(self.library)
        arguments = self.arguments  # not self, which holds earlier translations
        widens = (self.low or self.low_argument) is not None

        def flat(*leaves: Any) -> Any:
            return arguments.call(leaves)

        try:
            with within(WIDENS, widens):
                made: Callable[..., Any] = translate(flat, examples)
        except Unsupported:
            raise
        except Exception as error:  # raised by a library while tracing, for example for a branch that depends on data
            raise Unsupported(f"its translation raises {told(error)}") from error

        def text(xp: Any, *leaves: Any) -> Any:
            with within(WIDENS, widens):
                return made(xp, *leaves)

        return text


def _in_type(leaf: Leaf, precision: Precision) -> Leaf:
    """The leaf rounded to numbers of this type, in float64."""
    rounded = precision.rounded(leaf)
    return rounded if isinstance(leaf, np.ndarray) else float(rounded)


class _Output(io.TextIOBase):
    """Standard output that records whether anything was written."""

    used = False

    def __init__(self) -> None:
        self._real = sys.stdout

    def write(self, text: str) -> int:
        """Pass the text on."""
        self.used = True
        return self._real.write(text)

    def flush(self) -> None:
        """Pass the call on; Python also flushes what it collects, perhaps after the end of the real output."""
        if not self._real.closed:
            self._real.flush()


def _hint(error: Exception, notes: Sequence[str]) -> str:
    """Advice for common exceptions."""
    words = str(error).lower()
    if any("though given as int" in note for note in notes):
        return "; without a floating-point argument, integer arrays become float64: name those to differentiate in wrt"
    if "cuda" in words or "gpu" in words:
        return "; adbench checks on the CPU: take the device from the arguments"
    if "dtype" in words or "same type" in words:
        return "; adbench checks in float64: convert the function's arrays and parameters to float64"
    return ""


def told(error: BaseException) -> str:
    """An exception's type, first line and place in the user's code."""
    first_line = (str(error).strip().splitlines() or [""])[0]
    found = _innermost(error)
    place = f" ({Path(found[0].co_filename).name}, line {found[1]})" if found else ""
    if "setting an array element" in first_line:  # of a plain array, for example from np.zeros
        place += "; collect the numbers in a list, and make it an array with stack of the library"
    return f"{raised_in_callback(error) or f'{type(error).__name__}: {first_line}'}{place}"


def _innermost(error: BaseException) -> tuple[CodeType, int] | None:
    """The innermost user function in the traceback, and the line, or None."""
    walked = traceback.walk_tb(error.__traceback__)
    frames = [(frame.f_code, line) for frame, line in walked if is_of_user(frame.f_code.co_filename)]
    return frames[-1] if frames else None


@contextlib.contextmanager
def _recording(ran: set[CodeType], forwards: set[CodeType]) -> Iterator[None]:
    """Add the Python functions that run within the block; forwards: those inside a `torch.autograd.Function`.

    Adds none under a profiler in C, which Python cannot install again.
    """
    before: Any = sys.getprofile()
    if before is not None and not callable(before):
        yield
        return

    has_torch = "torch" in sys.modules  # one that the block imports is not complete at once
    depth = 0  # of calls of such functions

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal depth
        if event not in ("call", "return"):
            return
        code = frame.f_code
        begins = has_torch and code.co_name in FORWARD_NAMES and code in forward_codes()
        if event == "call":
            depth += begins
            ran.add(code)
            if depth:
                forwards.add(code)
        else:
            depth -= begins

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


def _refuse_value(value: Any, name: str) -> None:
    """Raise UsageError for anything but one real floating-point number or array."""
    if value is None:
        raise UsageError(f"{name} returns None; end it with `return` and a number or an array")
    if isinstance(value, str | bytes) or (not hasattr(value, "dtype") and not isinstance(value, int | float | complex)):
        raise UsageError(f"{name} returns {type(value).__name__}; return a number or an array")
    kind = np.asarray(value).dtype
    if kind.kind in "iub":
        raise UsageError(f"{name} returns {kind}, which has no derivative; return floating-point numbers")
    if kind.kind != "f":
        raise UsageError(f"{name} returns an array of {kind}; return floating-point numbers")


def _short(value: Any) -> str:
    array = np.asarray(value)
    return f"{float(array):.6g}" if array.ndim == 0 else f"an array starting with {array.flat[0]:.6g}"


def _is_of_oracle(leaf: Any) -> bool:
    from adbench.oracle.series.number import Real  # not at the top: plain numbers need no series

    return isinstance(leaf, Real) or (isinstance(leaf, np.ndarray) and leaf.dtype == object)


def _is_plain(leaf: Any) -> bool:
    """Whether an input is from Python or numpy, not from an AD library."""
    if isinstance(leaf, np.ndarray | np.generic):
        return leaf.dtype.kind in "biuf"
    return isinstance(leaf, float) or tree.is_static(leaf)


def _example(leaf: Any) -> Leaf:
    """The floats of the oracle's numbers."""
    if _is_of_oracle(leaf):
        from adbench.oracle.series.arrays import nearest  # not at the top: plain numbers need no series

        leaf = nearest(leaf)
    return leaf if np.ndim(leaf) else float(leaf)
