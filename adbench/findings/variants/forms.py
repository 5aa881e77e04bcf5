"""The eager and the compiled form of a library, and how far each is from the truth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any

from adbench.catalog.discovery import Catalog, select
from adbench.catalog.generated_files import file_stem
from adbench.catalog.selection import resolve
from adbench.execution.operators import on_device
from adbench.execution.operators.prepared_point import point
from adbench.findings.variants.first_difference import FirstDifference, first_difference, in_ulp, script
from adbench.functions.libraries import double_precision
from adbench.model.atomic_file import write_whole
from adbench.model.errors import Unsupported, UsageError
from adbench.model.operator import RELATIONS, Operator
from adbench.model.record import Record, grouped
from adbench.model.serialization import to_plain
from adbench.model.settings import FLOAT64, PROCESSOR, backend_and_device
from adbench.oracle.evidence import FLOAT64_DIGITS

FORMS: Mapping[str, tuple[str, str]] = {
    "torch": ("torch", "torch_compile"),
    "jax": ("jax_eager", "jax"),
    "tape": ("tape", "tape_compiled"),
}
"""Library -> the backends of its eager and its compiled form."""

LIBRARY_OF = {form: library for library, both in FORMS.items() for form in both}

WORDS = ("eager", "compiled")
SEARCH_SECONDS = 120.0
"""For the first operations that differ, of all cases together; then no further search begins."""

WORTH_DIGITS = 1.0
"""Of built-in cases, only forms whose results differ by this many digits are searched."""


def with_both_forms(asked: Sequence[str], folders: Sequence[str] = (), *, named: bool = True) -> tuple[str, ...]:
    """Both forms of the libraries of these backends, by name or glob.

    named   whether the user named them: then each must have a second form; others are left out

    Raises UsageError if a named one has none, or if none has one.
    """
    chosen = resolve(backends=asked, backend_folders=folders)
    names = select("backend", chosen.catalog.backends, chosen.backends)
    libraries = [LIBRARY_OF.get(name, "") for name in names]
    lacking = [name for name, library in zip(names, libraries, strict=True) if not library]
    if lacking and (named or not any(libraries)):
        raise UsageError(f"--variants: {lacking[0]} has no second form; choose from {', '.join(FORMS)}")
    return tuple(dict.fromkeys(form for library in libraries if library for form in FORMS[library]))


@dataclass(frozen=True)
class FormResult:
    """An operator by one form: the correct digits and the error of the worst number, or why it has no result."""

    backend: str
    digits: float | None
    ulp: float | None
    reason: str = ""

    @staticmethod
    def of(record: Record) -> FormResult:
        """The result in a record."""
        verdict = record.verdict
        if verdict is None:
            return FormResult(record.job.backend, None, None, record.reason or record.status)
        entries = [entry for entry in (*record.entries, verdict.worst, verdict.value) if entry is not None]
        digits = min((entry.digits_correct for entry in entries), default=None)
        return FormResult(record.job.backend, digits, verdict.ulp.worst if verdict.ulp else None)


@dataclass(frozen=True)
class FormsOfCase:
    """Both forms of a library on a case at a point: operator -> (eager, compiled).

    first    the first operation whose results differ, or why the search named no operation
    script   the file of the program that shows it, or ""
    device   on which both were computed
    """

    case: str
    size: int
    seed: int
    library: str
    results: Mapping[str, tuple[FormResult, FormResult]]
    first: FirstDifference | str = ""
    script: str = ""
    device: str = PROCESSOR

    @property
    def gaps(self) -> dict[str, float]:
        """Operator -> the difference of digits, positive if compiled is closer."""
        return {
            name: min(right.digits, FLOAT64_DIGITS) - min(left.digits, FLOAT64_DIGITS)
            for name, (left, right) in self.results.items()
            if left.digits is not None and right.digits is not None
        }

    @property
    def widest(self) -> tuple[str, float]:
        """The first of the operators with the largest difference of whole digits, and this difference."""
        return max(self.gaps.items(), key=lambda gap: round(abs(gap[1])), default=("", 0.0))

    @property
    def sentence(self) -> str:
        """Which form is closer to the truth."""
        for operator, (eager, compiled) in self.results.items():
            for word, one, other, rival in (
                ("eager", eager, "compiled", compiled),
                ("compiled", compiled, "eager", eager),
            ):
                if one.digits is None and rival.digits is not None:
                    return f"only {other} has a {operator}: {word} has none ({one.reason})"
        name, gap = self.widest
        if not name:
            reasons = dict.fromkeys(one.reason for pair in self.results.values() for one in pair)
            return f"neither form has a result: {'; '.join(filter(None, reasons))}"
        if abs(gap) < WORTH_DIGITS:
            return f"both forms are equally close to the truth, to {min(abs(gap), 0.9):.1f} digits"
        is_compiled = gap > 0
        ulp = self.results[name][is_compiled].ulp
        size = "" if ulp is None else f" ({in_ulp(ulp)})"
        worse = WORDS[not is_compiled]
        return f"{WORDS[is_compiled]} is closer{size}, {worse} loses {abs(gap):.0f} digits of the {name}"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        results = {name: dict(zip(WORDS, map(to_plain, pair), strict=True)) for name, pair in self.results.items()}
        names = ("case", "size", "seed", "library", "sentence", "script", "device")
        about = {name: getattr(self, name) for name in names}
        return {**about, "first": str(self.first), "results": results}


def compared(
    records: Iterable[Record],
    catalog: Catalog,
    *,
    every: bool,
    dtype: str = FLOAT64,
    scripts: Path | None = None,
    told: Callable[[str], None] = lambda name: None,
) -> list[FormsOfCase]:
    """Both forms at every case, size and point of a run, and the first operation that differs.

    every     search all of them, not only those with another number of digits
    scripts   the folder for programs that show a difference
    told      called with the name of a case before its search
    """
    judged = [record for record in records if record.job.operator != RELATIONS]
    found, begun = [], monotonic()
    places = grouped(judged, lambda one: (one.job.case, one.job.size, one.job.seed, *_form(one)[1:]))
    for place, of_place in places.items():
        by_form = {(_form(one)[0], one.job.operator): FormResult.of(one) for one in of_place}
        operators = dict.fromkeys(one.job.operator for one in of_place)
        pairs = {name: [by_form.get((form, name)) for form in FORMS[place[3]]] for name in operators}
        results = {name: (pair[0], pair[1]) for name, pair in pairs.items() if pair[0] and pair[1]}
        one = FormsOfCase(*place[:-1], results, device=place[-1])
        name, gap = one.widest
        if name and (every or abs(gap) >= WORTH_DIGITS):
            told(one.case)
            one = _searched(one, catalog, dtype, SEARCH_SECONDS - (monotonic() - begun), scripts)
        found.append(one)
    return found


def _searched(one: FormsOfCase, catalog: Catalog, dtype: str, seconds: float, scripts: Path | None) -> FormsOfCase:
    """The comparison with its first difference, and its script in the folder."""
    if dtype != FLOAT64 or seconds <= 0:
        why = f"not searched in {dtype}" if dtype != FLOAT64 else "not searched: there was no time left"
        return replace(one, first=f"{why}; name this case alone with -c")
    # A derivative depends on values: where these differ by digits too, they are the cause.
    of_value = one.widest[0] == "value" or abs(one.gaps.get("value", 0.0)) >= WORTH_DIGITS
    order: tuple[Operator, Operator] = ("value", "vjp") if of_value else ("vjp", "value")
    file = None
    try:
        with double_precision():
            backends = [catalog.backends[name] for name in FORMS[one.library]]
            forms = [on_device.loaded(backend, one.device, "outside") for backend in backends]
            at = point(catalog.cases[one.case], one.size, one.seed)
            first = first_difference(forms[0], forms[1], at, order, seconds)
            if scripts is not None:
                file = scripts / f"{file_stem(f'{one.library}_{one.case}_{one.size}_{one.seed}')}.py"
                file.parent.mkdir(parents=True, exist_ok=True)
                write_whole(file, script(first, one.library, forms[0], at, one.device).encode())
    except Unsupported as refusal:
        return replace(one, first=f"no operation is named: {refusal}")
    return replace(one, first=first, script="" if file is None else str(file))


def _form(record: Record) -> tuple[str, str, str]:
    """The backend of a record, its library and its device."""
    name, device = backend_and_device(record.job.backend)
    return name, LIBRARY_OF[name], device
