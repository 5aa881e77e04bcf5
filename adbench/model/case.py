"""What a case is: the maths once, for every library.

A case file sets `CASE = Case(...)`, or `CASES = {"name": Case(...), ...}` for a close family. The case's name is the
file's, or the key. See docs/write-a-case.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adbench.model.errors import UnknownName, UsageError
from adbench.model.operator import EVERY_OPERATOR, OF_ARRAYS, Operator

if TYPE_CHECKING:  # numpy is not imported by the parent until it has to be
    import numpy as np

Inputs = Mapping[str, Any]
ARROW = " → "
"""In the summary of a trap: the function and the point, the arrow, the true gradient."""
THREAD = re.compile(r"[\w.-]+/[\w.-]+#\d+")
DISCUSSED_IN = re.compile(rf" \((?:as )?{THREAD.pattern}\)$")
"""Where a fault is discussed: an issue of the library, or "as" an issue of another one with the same fault."""


def parts_of_reason(text: str) -> tuple[str, str, str]:
    """(what is returned, why, thread) of a reason in KNOWN; "nan: 0/0 (as a/b#7)" is ("nan", "0/0", "as a/b#7").

    The last two are empty where the reason does not have them.
    """
    thread = DISCUSSED_IN.search(text)
    outcome, _, why = (text[: thread.start()] if thread else text).partition(": ")
    return outcome, why, thread.group().strip(" ()") if thread else ""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A function to differentiate, its inputs at every size, and what is known about its gradient.

    f          f(xp, **inputs) -> scalar, or an array. `xp` has array-API names, `xp.linalg` and
               `xp.loop(step, state, n)`, where `step(i, state) -> state`. The function must not modify its inputs nor
               import a library.
    inputs     inputs(n, rng) -> mapping from argument name to value: a float, a float64 array, a Python int, bool or
               text (which is static: a length, a switch), or a nested dict, list or tuple of these. The same for the
               same seed.
    wrt        the names of the active inputs: those that the gradient is taken in.
    sizes      the sizes measured by default, ascending. A case with one size accepts no other.
    least      the smallest size that makes sense; most: the largest one, None where there is none.
    operators  what a run measures by default. Of a function whose value is an array: ("value", "jacobian").
    quick      the sizes of a quick run; by default those of `sizes` that `quick_sizes` picks.
    gradient   gradient(**inputs) -> one array (or tree of arrays) for each name in `wrt`, by hand in plain numpy,
               where a closed form exists.
    sparsity   sparsity(n) -> (rows, columns): where the Jacobian of an array-valued `f` may be other than zero. Rows
               are flat indices of the value; columns go through the entries of all active inputs in `wrt`'s order.
    flops      flops(n): elementary operations in one evaluation of `f`.
    declared   whether `gradient` is the truth by declaration, where differences of `f` cannot know it: a stopped
               gradient, a convention. Otherwise the truth is computed and `gradient` held to it.
    prepared   prepared(n, rng): inputs to prepare the backend with, where a trap lies in calling at others than those.
    faults     wrong results that several libraries share, and why: {"nan": "0/0 at the origin (owner/repository#7)"}.
               A backend's KNOWN names one by its key alone.
    tags       words that say what it is. A case tagged "trap" is checked and shown, never timed.
    suites     published comparisons that it belongs to, to select by: --suite gradbench.
    same_twin  the name of the case whose C++ twin is this one's too, and what a backend has of it in its own words: the
               same text with other arguments active.
    summary    one line for lists; by default the first line of the file's docstring.
    name, file what the catalog knows the case by and where it found it; filled in when the file is loaded.
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
        given: object = self.wrt  # of whatever type a user's file gave
        if isinstance(given, str):
            raise UsageError(f"wrt is the text {given!r}; write it as a tuple of names, ({given!r},)")
        if not self.wrt:
            raise UsageError("wrt is empty; name at least one input to differentiate in")
        if self.declared and self.gradient is None:
            raise UsageError("declared needs a `gradient`, which is the truth; add it, or remove declared")
        if not self.sizes or any(not isinstance(n, int) or n < 1 for n in (*self.sizes, *self.quick)):
            raise UsageError(f"sizes must be positive whole numbers, at least one; got {self.sizes} {self.quick}")
        if unfit := [n for n in (*self.sizes, *self.quick) if not self.accepts(n) and len(self.sizes) > 1]:
            raise UsageError(f"sizes and quick have {unfit[0]}, but the least is {self.least} and the most {self.most}")
        if unknown := [name for name in self.operators if name not in EVERY_OPERATOR]:
            raise UnknownName("operator", unknown[0], EVERY_OPERATOR)
        if self.sparsity is not None and not self.is_array_valued:
            raise UsageError("sparsity is for functions whose value is an array, with operators ('value', 'jacobian')")

    def accepts(self, size: int) -> bool:
        """Whether the case can be built at this size: any from `least` to `most`, unless it has only one."""
        if len(self.sizes) == 1:
            return size in self.sizes
        return self.least <= size and (self.most is None or size <= self.most)

    @property
    def takes(self) -> str:
        """Its own sizes, and those that it can be built at, in words."""
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
        """All that can be asked: those of arrays of an array-valued function, all of the others."""
        return tuple(name for name in EVERY_OPERATOR if name in OF_ARRAYS or not self.is_array_valued)

    @property
    def texts(self) -> tuple[str, ...]:
        """The names under which others have a text of it: its own, then that of the case whose text it is, too."""
        return tuple(dict.fromkeys((self.name, self.same_twin or self.name)))

    @property
    def twin(self) -> Path | None:
        """The same function as a C++ template: `<name>.hpp` beside the case's file, or None where there is none."""
        try:
            path = Path(self.file).with_name(f"{self.texts[-1]}.hpp")
            return path if self.file and path.is_file() else None
        except (OSError, ValueError):  # a name that no file can have
            return None

    def known_fault(self, given: str) -> str:
        """The reason in a backend's KNOWN in full: "nan", or "nan (owner/repository#7)", stands for one of `faults`."""
        own = DISCUSSED_IN.search(given)
        outcome = given[: own.start()] if own else given
        if outcome not in self.faults:
            return given
        why = self.faults[outcome]
        return f"{outcome}: {DISCUSSED_IN.sub('', why) + own.group() if own else why}"

    @property
    def is_trap(self) -> bool:
        """Whether the case is there to be got wrong: checked, never timed."""
        return "trap" in self.tags

    @property
    def quick_sizes(self) -> tuple[int, ...]:
        """The sizes of a quick run: `quick`, or the first, the middle and, of more than four, the one between them."""
        if self.quick:
            return self.quick
        middle = len(self.sizes) // 2
        return tuple(dict.fromkeys(self.sizes[i] for i in (0, middle // 2, middle)))

    def bind_prepared(self, size: int, seed: int) -> tuple[Any, ...]:
        """The values of the inputs to prepare with: those of `prepared` where the case has it, else those of `bind`."""
        if self.prepared is None:
            return self.bind(size, seed)[1]
        return replace(self, inputs=self.prepared, prepared=None).bind(size, seed)[1]

    def bind(self, size: int, seed: int) -> tuple[tuple[str, ...], tuple[Any, ...], tuple[int, ...]]:
        """The names and values of the inputs at this size, and the positions of the active ones.

        The generator is seeded by (seed, size), so that one size does not depend on which others were asked for.

        Raises UsageError where `wrt` names no input, or an active input holds no floating-point number.
        """
        import numpy as np  # here, not above: listing cases must not wait for numpy

        from adbench.model import tree

        inputs = dict(self.inputs(size, np.random.default_rng([seed, size])))
        names = tuple(inputs)
        for name in self.wrt:
            if name not in inputs:
                raise UsageError(f"wrt names {name!r}, which is not an input; there are: {', '.join(names)}")
            if not all(tree.is_active(leaf) for leaf in tree.leaves(inputs[name])):
                raise UsageError(
                    f"input {name!r} is active, so it must hold floats or float64 arrays; got {inputs[name]!r}"
                )
        return names, tuple(inputs.values()), tuple(names.index(name) for name in self.wrt)


def function_of(case: Case, names: tuple[str, ...], xp: Any, size: int | None = None) -> Callable[..., Any]:
    """`case.f` on the namespace `xp`, as a function of its inputs in the order of `names`.

    Its attribute `case` is the case, for a backend that brings a text of its own for it (a C++ twin, idiomatic code);
    `names` are those of its inputs, and `sparsity` is what the case says about its Jacobian at this size: (rows,
    columns), or None.
    """

    def f(*args: Any) -> Any:
        return case.f(xp, **dict(zip(names, args, strict=True)))

    f.__name__ = f.__qualname__ = getattr(case.f, "__name__", "f")
    # A function may have attributes, which mypy does not know of.
    f.case, f.names = case, names  # type: ignore[attr-defined]
    f.sparsity = case.sparsity(size) if case.sparsity and size else None  # type: ignore[attr-defined]
    return f
