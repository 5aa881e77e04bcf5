"""Cases: functions to differentiate, written once for all libraries.

A case file sets `CASE = Case(...)`, or `CASES = {"name": Case(...), ...}` for a close family. The case's name is the
file's, or the key. See docs/how-to/write-a-case.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adbench.model.errors import UnknownName, UsageError
from adbench.model.operator import DEFINITIONS, EVERY_OPERATOR, Operator

if TYPE_CHECKING:  # the parent process imports numpy only when needed
    import numpy as np

Inputs = Mapping[str, Any]
ARROW = " → "
"""In the summary of a trap: the function and the point, the arrow, the true gradient."""
ONE_BY_ONE = frozenset({"scalar-loop", "loop", "nested-loops", "recursion", "data-dependent", "elements"})
"""Tags of cases that compute numbers, or small arrays, one after the other."""

THREAD = re.compile(r"[\w.-]+/[\w.-]+#\d+")
DISCUSSED_IN = re.compile(rf" \((?:as )?{THREAD.pattern}\)$")
"""A link at the end of a reason: the library's issue, or "as" and an issue of a library with the same fault."""


def parts_of_reason(text: str) -> tuple[str, str, str]:
    """(what is returned, why, thread) of a known fault; "nan: 0/0 (as a/b#7)" is ("nan", "0/0", "as a/b#7").

    The last two are empty where the reason does not have them.
    """
    thread = DISCUSSED_IN.search(text)
    outcome, _, why = (text[: thread.start()] if thread else text).partition(": ")
    return outcome, why, thread.group().strip(" ()") if thread else ""


def reason_of(got: str, why: str, thread: str) -> str:
    """The one line of these parts, which `parts_of_reason` takes apart."""
    return f"{got}{why and f': {why}'}{thread and f' ({thread})'}"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A function to differentiate, its inputs at every size, and what is known about its gradient.

    f          f(xp, **inputs) -> scalar, or an array. `xp` has array-API names, `xp.linalg` and
               `xp.loop(step, state, n)`, where `step(i, state) -> state`. The function must not modify its inputs nor
               import a library.
    inputs     inputs(n, rng) -> mapping from argument name to value: a float, a float64 array, a Python int, bool or
               text (which is static: a length, a switch), or a nested dict, list or tuple of these. The same for the
               same seed.
    wrt        the names of the active inputs, in which the function is differentiated.
    sizes      the sizes measured by default, ascending. A case with one size accepts no other.
    least      the smallest accepted size; most: the largest one, or None.
    operators  operators measured by default. For an array-valued function: ("value", "jacobian").
    quick      the sizes of a quick run; by default `quick_sizes` picks some of `sizes`.
    gradient   gradient(**inputs) -> one array (or tree of arrays) for each name in `wrt`, by hand in plain numpy,
               if a closed form exists.
    sparsity   sparsity(n) -> (rows, columns): the entries of the Jacobian of an array-valued `f` that may be nonzero.
               Rows are flat indices of the value; columns go through the entries of all active inputs in `wrt`'s order.
    flops      flops(n): elementary operations in one evaluation of `f`.
    declared   whether `gradient` is the reference by declaration because differences of `f` cannot know it: a stopped
               gradient, a convention. Otherwise the reference is computed and `gradient` is checked against it.
    prepared   prepared(n, rng): inputs to prepare the backend with, for traps that appear in calls at other inputs.
    faults     wrong results that several libraries share, and why: {"nan": "0/0 at the origin (owner/repository#7)"}.
               A known fault refers to one by its key.
    tags       keywords. A case tagged "trap" is checked and shown, never timed.
    suites     groups that include it, for --suite: published comparisons, or a field such as machine-learning.
    same_twin  the case whose C++ implementation and native implementations it shares: the same source with other
               active arguments.
    summary    one line for lists; by default the first line of the file's docstring.
    name, file the case's name in the catalog, and its file; filled in when the file is loaded.
    """

    f: Callable[..., Any]
    inputs: Callable[[int, np.random.Generator], Inputs]
    wrt: tuple[str, ...]
    sizes: tuple[int, ...]
    quick: tuple[int, ...] = ()
    least: int = 1
    most: int | None = None
    operators: tuple[Operator, ...] = ("value", "gradient")
    gradient: Callable[..., tuple[Any, ...]] | None = None
    sparsity: Callable[[int], tuple[Sequence[int], Sequence[int]]] | None = None
    flops: Callable[[int], float] | None = None
    declared: bool = False
    prepared: Callable[[int, np.random.Generator], Inputs] | None = None
    faults: Mapping[str, str] = field(default_factory=dict, hash=False)
    tags: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    same_twin: str = ""
    summary: str = ""
    name: str = ""
    file: str = ""

    def __post_init__(self) -> None:
        wrt: object = self.wrt  # of whatever type a user's file gave
        if isinstance(wrt, str):
            raise UsageError(f"wrt is the string {wrt!r}; write ({wrt!r},)")
        if not self.wrt:
            raise UsageError("wrt is empty; name at least one input")
        if self.declared and self.gradient is None:
            raise UsageError("declared needs a gradient; define `gradient` or remove `declared`")
        if not self.sizes or any(not isinstance(n, int) or n < 1 for n in (*self.sizes, *self.quick)):
            raise UsageError(f"sizes must be one or more positive integers; got {self.sizes} {self.quick}")
        if unfit := [n for n in (*self.sizes, *self.quick) if not self.accepts(n) and len(self.sizes) > 1]:
            raise UsageError(f"sizes and quick have {unfit[0]}; use {self.least} to {self.most}")
        if unknown := [name for name in self.operators if name not in EVERY_OPERATOR]:
            raise UnknownName("operator", unknown[0], EVERY_OPERATOR)
        if self.sparsity is not None and not self.is_array_valued:
            raise UsageError("sparsity needs an array-valued function; set operators to ('value', 'jacobian')")

    def accepts(self, size: int) -> bool:
        """Whether the case can be built at this size: any from `least` to `most`, unless it has only one."""
        if len(self.sizes) == 1:
            return size in self.sizes
        return self.least <= size and (self.most is None or size <= self.most)

    @property
    def takes(self) -> str:
        """Its default sizes and its accepted sizes, in words."""
        own = ", ".join(map(str, self.sizes))
        if len(self.sizes) == 1:
            return own
        return f"{own}; it takes any from {self.least}" + (f" to {self.most}" if self.most else "")

    @property
    def is_array_valued(self) -> bool:
        """Whether the function's value is an array, so that it has a Jacobian and no gradient."""
        return "jacobian" in self.operators and "gradient" not in self.operators

    @property
    def possible_operators(self) -> tuple[Operator, ...]:
        """The operators that apply to it, without `batch_gradient`, which only a request by name includes.

        They are fewer for an array-valued function than for a scalar.
        """
        every = (one for one in DEFINITIONS.values() if not one.at_points)
        return tuple(one.name for one in every if one.of_arrays or not self.is_array_valued)

    @property
    def texts(self) -> tuple[str, ...]:
        """The names under which backends may implement it: its own, then that of `same_twin`."""
        return tuple(dict.fromkeys((self.name, self.same_twin or self.name)))

    @property
    def twin(self) -> Path | None:
        """Its C++ implementation: `<name>.hpp` next to the case's file, or None."""
        try:
            path = Path(self.file).with_name(f"{self.texts[-1]}.hpp")
            return path if self.file and path.is_file() else None
        except (OSError, ValueError):  # the name is not a valid file name
            return None

    def known_fault(self, text: str) -> str:
        """Expand a known fault: "nan" or "nan (owner/repository#7)" refers to one of `faults`."""
        own = DISCUSSED_IN.search(text)
        outcome = text[: own.start()] if own else text
        if outcome not in self.faults:
            return text
        why = self.faults[outcome]
        return f"{outcome}: {DISCUSSED_IN.sub('', why) + own.group() if own else why}"

    @property
    def is_trap(self) -> bool:
        """Whether the case tests for a known mistake: it is checked, never timed."""
        return "trap" in self.tags

    @property
    def quick_sizes(self) -> tuple[int, ...]:
        """The sizes of a quick run: `quick`, or the first, the middle and, of more than four, the one between them."""
        if self.quick:
            return self.quick
        middle = len(self.sizes) // 2
        return tuple(dict.fromkeys(self.sizes[i] for i in (0, middle // 2, middle)))

    def bind_prepared(self, size: int, seed: int) -> tuple[Any, ...]:
        """The input values to prepare with: from `prepared` if the case has it, else from `bind`."""
        if self.prepared is None:
            return self.bind(size, seed)[1]
        return replace(self, inputs=self.prepared, prepared=None).bind(size, seed)[1]

    def bind(self, size: int, seed: int) -> tuple[tuple[str, ...], tuple[Any, ...], tuple[int, ...]]:
        """The names and values of the inputs at this size, and the positions of the active ones.

        The generator is seeded by (seed, size), so each size is independent of the others.

        Raises UsageError if `wrt` names no input, or if an active input holds no floating-point number.
        """
        import numpy as np  # imported here so that listing cases stays fast

        from adbench.model import tree

        inputs = dict(self.inputs(size, np.random.default_rng([seed, size])))
        names = tuple(inputs)
        for name in self.wrt:
            if name not in inputs:
                raise UsageError(f"wrt names {name!r}, which is not an input; use names from {', '.join(names)}")
            if not all(tree.is_active(leaf) for leaf in tree.leaves(inputs[name])):
                raise UsageError(f"input {name!r} is active, so make it float or float64; got {inputs[name]!r}")
        return names, tuple(inputs.values()), tuple(names.index(name) for name in self.wrt)


def function_of(case: Case, names: tuple[str, ...], xp: Any, size: int | None = None) -> Callable[..., Any]:
    """`case.f` on the namespace `xp`, as a function of its inputs in the order of `names`.

    Its attribute `case` is the case, for backends with their own implementation; `names` are its inputs; `sparsity` is
    (rows, columns) of the Jacobian's nonzero entries at this size, or None.
    """

    def f(*args: Any) -> Any:
        return case.f(xp, **dict(zip(names, args, strict=True)))

    f.__name__ = f.__qualname__ = getattr(case.f, "__name__", "f")
    # mypy does not know that functions may have attributes.
    f.case, f.names = case, names  # type: ignore[attr-defined]
    f.sparsity = case.sparsity(size) if case.sparsity and size else None  # type: ignore[attr-defined]
    return f
