"""The result of a check of a user's function: a verdict for each derivative, as a table, HTML or a dict."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any

from adbench.oracle.evidence import (
    BADNESS,
    DOUBLE,
    PRECISIONS,
    EntryEvidence,
    Precision,
    in_digits,
    worst_entries,
)
from adbench.oracle.verdict import Verdict, digits_in_words

if TYPE_CHECKING:
    from adbench.functions.user_function import UserFunction

WIDTH = 80
SIGNS = {"right": "✓", "approximate": "≈", "verified": "~", "inconclusive": "?", "blind": "?", "wrong": "✗"}
NOT_HAD = "∅"
MOST_NAMES = 6  # of points left out
INDEX = re.compile(r"\[[\d, ]+\]$")
SHOWN = {"float64": 15, "float32": 9, "float16": 5, "bfloat16": 4}
"""So many digits show each number of a type in another way."""


@dataclass(frozen=True)
class CheckedMode:
    """One derivative at one point.

    mode      an operator of adbench/model/operator.py
    point     "the given point", "zeros", "random point 1", ...
    verdict   None if the derivative does not exist, for the `reason` given
    entries   every compared number
    how       "native", or "from ..." with the operators that it is computed from
    more      the number of further compared numbers, none worse than `entries`
    beside    the same numbers by the definition of a kernel, in its precision, by place
    """

    mode: str
    point: str
    verdict: Verdict | None
    entries: tuple[EntryEvidence, ...] = ()
    how: str = ""
    reason: str = ""
    more: int = 0
    beside: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def wrong(cls, mode: str, point: str, reason: str) -> CheckedMode:
        """A derivative that is wrong for another reason than its numbers."""
        return cls(mode, point, Verdict("wrong", reason, None, None, 0, 0, 0, 0, "", ""))

    def renamed(self, rename: Callable[[str], str]) -> CheckedMode:
        """The same with other names of entries."""
        if self.verdict is None:
            return self

        def entry(one: EntryEvidence) -> EntryEvidence:
            return replace(one, where=rename(one.place), index=())

        worst = self.verdict.worst and entry(self.verdict.worst)
        verdict = replace(self.verdict, sentence=rename(self.verdict.sentence), worst=worst)
        return replace(self, verdict=verdict, entries=tuple(map(entry, self.entries)))

    @property
    def sign(self) -> str:
        """✓ right, ~ fewer than nine digits, ? blind, ✗ wrong, ∅ missing."""
        return NOT_HAD if self.verdict is None else SIGNS[self.verdict.word]

    @property
    def loses_digits(self) -> bool:
        """Whether rounding hides a part of it."""
        return self.verdict is not None and self.verdict.word in ("verified", "blind")

    @property
    def told(self) -> str:
        """The verdict in a sentence, or the reason why the derivative does not exist."""
        return self.reason if self.verdict is None else self.verdict.sentence

    def to_dict(self, ulps: Callable[[EntryEvidence], dict[str, Any]]) -> dict[str, Any]:
        """For JSON; ulps: the error of an entry in units in the last place."""
        of_verdict = {} if self.verdict is None else {"digits": self.verdict.digits, "proved": self.verdict.proved}
        return {
            "mode": self.mode,
            "point": self.point,
            "word": "unsupported" if self.verdict is None else self.verdict.word,
            "sentence": self.told,
            "how": self.how,
            **of_verdict,
            "entries": [{**_entry_to_dict(entry), **ulps(entry)} for entry in self.entries],
        }


@dataclass(frozen=True)
class FunctionCheck:
    """The check of a function's derivatives: `print` it, show it in a notebook, or use `to_dict()`.

    function   its name
    backend    the backend that computed the derivatives
    library    the function's library, with its version
    rows       one for each point and mode
    values     the function's value at each point, compared in the same way
    outside    omitted points, where the function has no finite value; others are checked instead
    missing    the number of points that are not checked, because no others were found
    notes      conversions and other remarks, one sentence each
    types      the types below float64 in which the arguments were given, by name
    precision  the type by whose rounding the numbers are judged, if it is not float64

    It also has the attributes of the deciding (worst) verdict: `word`, `sentence`, `worst`, `proved`, `method`,
    `reason`. The word is "right", "verified" (to fewer than nine digits), "blind" (rounding hides the answer, or the
    reference is unknown) or "wrong".
    """

    function: str
    backend: str
    library: str
    rows: tuple[CheckedMode, ...]
    values: tuple[CheckedMode, ...] = ()
    outside: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    missing: int = 0
    types: Mapping[str, str] = field(default_factory=dict)
    precision: str = ""

    @classmethod
    def of(cls, f: UserFunction, outside: Sequence[int], notes: Sequence[str], **parts: Any) -> FunctionCheck:
        """The check of a function, for Python and the command line.

        outside   the numbers of omitted points
        notes     beside those of the function
        parts     backend, library, rows, values and missing
        """
        values: Sequence[CheckedMode] = parts["values"]
        remarks = (*f.notes, *(_undefined(values[0]) if values else ()), *notes)
        if f.types:
            types = {name: precision.name for name, precision in f.types.items()}
            parts = {**parts, "types": types, "precision": f.precision.name}
        found = cls(function=f.__name__, outside=tuple(map(f.point_name, outside)), notes=remarks, **parts)
        outputs = f.arguments.outputs
        found = found if outputs is None else found.renamed(outputs.renamed)
        if not f.arguments.complex:
            return found
        from adbench.functions.complex_arguments import remarks_on_parts  # not at the top: few arguments are complex

        of_parts = remarks_on_parts(f.arguments.complex, outputs, f.library.name, found.entries)
        return replace(found, notes=(*of_parts, *found.notes))

    def renamed(self, rename: Callable[[str], str]) -> FunctionCheck:
        """The same with other names of entries."""
        rows, values = (tuple(row.renamed(rename) for row in rows) for rows in (self.rows, self.values))
        return replace(self, rows=rows, values=values)

    @property
    def deciding(self) -> CheckedMode:
        """The worst row; a wrong value is worse than any derivative."""
        judged = [row for row in self.rows if row.verdict is not None]
        judged = [row for row in self.values if row.verdict and row.verdict.word == "wrong"] + judged
        return max(judged, key=_badness)

    @property
    def verdict(self) -> Verdict:
        """The verdict of the worst row."""
        found = self.deciding.verdict
        assert found is not None
        return found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in Verdict.__dataclass_fields__:
            raise AttributeError(f"a FunctionCheck has no attribute {name!r}")
        return getattr(self.verdict, name)

    @property
    def is_right(self) -> bool:
        """Whether every derivative is correct, to as many digits as can be verified."""
        return self.verdict.is_right

    @property
    def is_wrong(self) -> bool:
        """Whether a derivative or the value is wrong."""
        return bool(self.verdict.word == "wrong")

    @property
    def lacking(self) -> tuple[CheckedMode, ...]:
        """The missing derivatives of the function or the library, each with the reason."""
        return tuple(row for row in self.rows if row.verdict is None)

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes, and the conventions by which derivatives are right."""
        conventions = (row.verdict.note for row in self.rows if row.verdict is not None)
        return tuple(filter(None, dict.fromkeys((*self.notes, *conventions))))

    @property
    def entries(self) -> tuple[EntryEvidence, ...]:
        """The numbers of the deciding row."""
        return self.deciding.entries

    def to_dict(self) -> dict[str, Any]:
        """Dicts, lists, numbers and strings only: valid JSON, with NaN and infinities as strings."""
        verdict = self.verdict
        return {
            "function": self.function,
            "backend": self.backend,
            "library": self.library,
            "precision": self.precision or "float64",
            "word": verdict.word,
            "sentence": verdict.sentence,
            "proved": verdict.proved,
            "method": verdict.method,
            "reason": verdict.reason,
            "digits": verdict.digits,
            "values": [row.to_dict(self._ulps) for row in self.values],
            "rows": [row.to_dict(self._ulps) for row in self.rows],
            "outside": list(self.outside),
            "notes": list(self.remarks),
        }

    @property
    def title(self) -> str:
        """The verdict in one line."""
        verdict, row = self.verdict, self.deciding
        words = {"right": "right", "verified": self._how_far,
                 "approximate": "within its claim", "blind": self._why_blind}  # fmt: skip
        truth = "truth proved" if verdict.proved else "truth not proved"
        by = self.library if self.library.split()[0] == self.backend else f"{self.backend} ({self.library})"
        by += " (in float64)" if any(re.search(r"though given as b?float", note) for note in self.notes) else ""
        many = f"{len(self.rows) - len(self.lacking)} derivatives" if len(self.rows) > 1 else row.mode
        if verdict.word == "wrong" and len(self.rows) > 1:
            every, kinds = self.rows, "derivatives"
            if any(one.verdict is not None and one.verdict.word == "wrong" for one in self.values):
                every, kinds = (*self.values, *self.rows), "values and derivatives"
            wrong = sum(one.verdict is not None and one.verdict.word == "wrong" for one in every)
            many = f"{wrong} of {len(every)} {kinds}"
        kind = f" in {self.precision}" if self.precision else ""
        return f"{row.sign} {words.get(verdict.word, verdict.word)}: {many} of {self.function} by {by}{kind}; {truth}"

    def _type_of(self, entry: EntryEvidence) -> Precision:
        """The type of a number: that of its argument, or else the one by which it is judged."""
        leaf = INDEX.sub("", entry.where.rpartition(", ")[2])
        return PRECISIONS.get(self.types.get(leaf, self.precision), DOUBLE)

    def _in_ulp(self, entry: EntryEvidence) -> tuple[float, float]:
        """The error and the tolerated error of a number, in units in the last place."""
        unit = self._type_of(entry).ulp(entry.expected)
        return abs(entry.got - entry.expected) / unit, entry.bound / unit

    def _ulps(self, entry: EntryEvidence) -> dict[str, Any]:
        """Both errors for JSON; nothing in float64."""
        errors = map(_plain, self._in_ulp(entry)) if self.precision else ()
        return dict(zip(("ulp", "tolerated_ulp"), errors, strict=False))

    @property
    def _how_far(self) -> str:
        seen = self.verdict.checked - self.verdict.blind
        if self.precision and self.verdict.blind:
            return f"right where rounding lets it show, in {seen} of {self.verdict.checked} numbers"
        return f"right to {digits_in_words(self.verdict.digits or 0.0)}"

    @property
    def _why_blind(self) -> str:
        number = self.verdict.worst
        unknown = number is None or math.isnan(number.bound)
        return "blind: the reference is unknown" if unknown else "blind: rounding hides the answer"

    @property
    def footnotes(self) -> tuple[str, ...]:
        """The sentences below the table."""
        verdict, found = self.verdict, list(self.remarks)
        if verdict.word in ("wrong", "blind"):
            found.insert(0, verdict.sentence)
        if not verdict.proved and verdict.reason:
            why = verdict.reason.replace(": Unsupported: ", ": ")
            found.append(f"truth from {verdict.method}: {why}" if verdict.method else why)
        for why in dict.fromkeys(row.reason for row in self.lacking):
            modes = dict.fromkeys(row.mode for row in self.lacking if row.reason == why)
            found.append(f"{NOT_HAD} {', '.join(modes)}: {why}")
        if len(self.rows) == 1 and self.deciding.how.startswith("from "):
            found.append(f"the {self.deciding.mode} is computed {self.deciding.how}")
        if self.outside:
            many = f"{len(self.outside)} point{'s' if len(self.outside) > 1 else ''}"
            names = [*self.outside[:MOST_NAMES], *[f"{len(self.outside) - MOST_NAMES} more"]][: len(self.outside)]
            instead = f"{self.missing} of them without replacement" if self.missing else "others are checked instead"
            found.append(f"{many} outside the function's domain left out: {', '.join(names)}; {instead}")
        return tuple(found)

    def __str__(self) -> str:
        lines = textwrap.wrap(self.title, WIDTH, subsequent_indent="  ")
        if len(self.rows) > 1:
            lines += ["", *self._modes(), ""]
            lines.append(f"{self.deciding.mode} at {self.deciding.point}:")
        lines += self._numbers()
        for note in self.footnotes:
            lines += textwrap.wrap(note, WIDTH, initial_indent="  ", subsequent_indent="    ")
        return "\n".join(lines)

    __repr__ = __str__

    def summary(self) -> list[tuple[str, str, str, str]]:
        """Sign, mode, points and verdict: one row for each mode, for the worst of its points.

        A derivative that exists only at some points has two rows. The points are "" if there is one.
        """
        found, several = [], len({row.point for row in self.rows}) > 1
        for mode in dict.fromkeys(row.mode for row in self.rows):
            judged = [row for row in self.rows if row.mode == mode and row.verdict is not None]
            lacking = [row for row in self.lacking if row.mode == mode]
            for rows in filter(None, (judged, lacking)):
                row = max(rows, key=_badness) if judged is rows else rows[0]
                words = [row.verdict.word, _digits(row.verdict.digits)] if row.verdict else ["not available"]
                words += [f"({row.how})"] if row.how.startswith("from ") else []
                many = f"{len(rows)} point{'s' if len(rows) > 1 else ''}" if several else ""
                found.append((row.sign, mode, many, " ".join(filter(None, words))))
        return found

    def _modes(self) -> list[str]:
        """The rows of the summary in columns."""
        rows = self.summary()
        modes, points = (max(len(row[k]) for row in rows) for k in (1, 2))
        between = 2 if points else 0
        return [_cut(f"{sign} {mode:<{modes}}  {point:<{points + between}}{what}") for sign, mode, point, what in rows]

    def shown(self) -> tuple[list[EntryEvidence], int]:
        """The numbers that a table shows, the value first, and the number of omitted ones."""
        row = self.deciding
        places = {entry.place for entry in row.entries}
        values = [one.entries[0] for one in self.values if one.point == row.point and one.entries]
        value = [one for one in values if one.place not in places]
        entries = worst_entries(row.entries)
        return value + entries, len(row.entries) + row.more - len(entries)

    def _numbers(self) -> list[str]:
        entries, _ = self.shown()
        if not entries:
            return []
        cells = list(map(self._cells, entries))
        head = self._head("")
        widest = [max(len(row[k]) for row in (head, *cells)) for k in range(len(head))]
        widest[1] = min(widest[1], WIDTH - 2 * len(widest) + 2 - sum(widest[2:]))
        lines = []
        for sign, place, *numbers in (head, *cells):
            half = (widest[1] - 1) // 2
            name = place if len(place) <= widest[1] else f"{place[: widest[1] - 1 - half]}…{place[-half:]}"
            columns = "".join(f"  {text:>{width}}" for text, width in zip(numbers, widest[2:], strict=True))
            lines.append(_cut(f"{sign:1} {name:<{widest[1]}}{columns}"))
        return lines + textwrap.wrap(self._others(), WIDTH, initial_indent="  ", subsequent_indent="    ")

    def _others(self) -> str:
        """What the table leaves out: "... and 30 more, all right"; of a large array, also that this is a sample."""
        entries, left_out = self.shown()
        rest = [entry for entry in self.deciding.entries if entry not in entries]
        all_right = ", all right" if all(entry.word == "right" for entry in rest) else ""
        if (hidden := self.verdict.hidden) is None:
            return f"... and {left_out} more{all_right}" if left_out else ""
        others = f"the other {hidden.entries:,} entries of {hidden.where}"
        compared = f"{others} were not compared" if math.isinf(hidden.error) else f"sums compare {others}"
        more = f"and {left_out} more of a sample{all_right}" if left_out else "a sample"
        return f"... {more}; {compared}"

    def _head(self, entry: str) -> tuple[str, ...]:
        """The heads of the columns of `_cells`."""
        more = ("ulp", "explained", *(("definition",) if self.deciding.beside else ())) if self.precision else ()
        return ("", entry, "got", "expected", "digits", *more)

    def _cells(self, entry: EntryEvidence) -> tuple[str, ...]:
        """The sign, the place and the numbers of an entry, as text."""
        digits = _digits(entry.digits_correct)
        if not self.precision:
            return self._sign(entry), entry.place, number(entry.got), expected(entry), digits
        shown = SHOWN[self._type_of(entry).name]
        ulps = list(self._in_ulp(entry))
        if self.deciding.beside:
            other = self.deciding.beside.get(entry.place, math.nan)
            ulps.append(self._in_ulp(replace(entry, got=other))[0])
        texts = ["" if math.isnan(ulp) else f"{ulp:.1f}" if ulp < 1e4 else f"{ulp:.0e}" for ulp in ulps]
        texts = texts if entry.expected else ["–" if text else "" for text in texts]  # a unit of 0 says nothing
        return self._sign(entry), entry.place, number(entry.got, shown), expected(entry, shown + 2), digits, *texts

    def _sign(self, entry: EntryEvidence) -> str:
        """The entry's sign; "" for methods that are inexact by design, which are judged as a whole."""
        return SIGNS["approximate" if self.verdict.word == "approximate" and entry.word == "wrong" else entry.word]

    def _repr_html_(self) -> str:
        """For notebooks."""
        entries, _ = self.shown()
        parts = [f"<p><b>{escape(self.title)}</b></p>"]
        if len(self.rows) > 1:
            parts.append(_html_table(("", "derivative", "", "verdict"), self.summary()))
            parts.append(f"<p>{escape(self.deciding.mode)} at {escape(self.deciding.point)}:</p>")
        if entries:
            parts.append(_html_table(self._head("entry"), list(map(self._cells, entries))))
        if others := self._others():
            parts.append(f"<p>{escape(others)}</p>")
        parts += [f"<p>{escape(note)}</p>" for note in self.footnotes]
        return "<div>" + "".join(parts) + "</div>"


def number(x: float, digits: int = 15) -> str:
    """A number as tables show it."""
    return f"{x:.{digits}g}"


def expected(entry: EntryEvidence, digits: int = 15) -> str:
    """The reference number, or its interval."""
    if math.isnan(entry.expected):
        return "finite" if entry.interval[0] == -math.inf else "unknown"
    low, high = entry.interval
    return f"{low:g} to {high:g}" if low < high else number(entry.expected, digits)


def _undefined(value: CheckedMode) -> list[str]:
    """A note if the function has no finite value at the given point."""
    strange = [entry for entry in value.entries if not math.isfinite(entry.got)]
    return [f"the function has no finite value here: {strange[0].place} is {strange[0].got}"] if strange else []


def _badness(row: CheckedMode) -> tuple[float, ...]:
    assert row.verdict is not None
    verdict = row.verdict
    number = verdict.worst
    excess = abs(number.got - number.expected) / (number.bound or 1.0) if number is not None else math.inf
    digits = 0.0 if verdict.digits is None else verdict.digits
    return BADNESS[verdict.word], -digits, math.inf if math.isnan(excess) else excess


def _digits(digits: float | None) -> str:
    return "" if digits is None else in_digits(digits)


def _cut(line: str) -> str:
    return line.rstrip() if len(line) <= WIDTH else line[: WIDTH - 1] + "…"


def _html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        parts = (f"<{tag} style='text-align:left;white-space:nowrap'>{escape(cell)}</{tag}>" for cell in cells)
        return f"<tr>{''.join(parts)}</tr>"

    return "<table>" + line(head, "th") + "".join(line(row, "td") for row in rows) + "</table>"


def _plain(x: float) -> Any:
    return x if math.isfinite(x) else str(x)


def _entry_to_dict(entry: EntryEvidence) -> dict[str, Any]:
    return {
        "entry": entry.place,
        "got": _plain(entry.got),
        "expected": _plain(entry.expected),
        "digits": entry.digits_correct,
        "word": entry.word,
    }
