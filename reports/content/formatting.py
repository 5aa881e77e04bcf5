"""Formats numbers, names and outcomes, for all reports alike.

Quantities stay in seconds and bytes everywhere else; they get their unit here, when they are printed.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Literal

from adbench.model.record import Word as Word

if TYPE_CHECKING:
    from adbench.measure.statistics import Interval

MISSING = "—"
OWN = "◆"
"""Marks adbench's own engine, before its name, as our other signs are before what they mark."""


@dataclass(frozen=True)
class WordMeaning:
    """The sign, label and meaning of a word. `bad` is a failure of the backend; only "right" is ranked."""

    sign: str
    label: str
    meaning: str
    bad: bool = False


OUTCOMES: dict[Word, WordMeaning] = {
    "right": WordMeaning("✓", "right", "correct: agrees with the reference"),
    "approximate": WordMeaning("≈", "approximate", "inexact by design, as finite differences are"),
    "verified": WordMeaning("~", "verified", "correct to the digits shown; rounding hides the others"),
    "blind": WordMeaning("?", "blind", "rounding hides the answer: zero would pass too"),
    "inconclusive": WordMeaning(
        "?", "inconclusive", "rounding hides the answer: fewer than nine digits can be verified"
    ),
    "unchecked": WordMeaning("○", "unchecked", "measured, but not checked"),
    "wrong": WordMeaning("✗", "wrong", "a wrong, NaN or mis-shaped result", bad=True),
    "surprise": WordMeaning("‽", "surprise", "correct, although listed as a known bug"),
    "known": WordMeaning("⊗", "known", "known bug"),
    "crashed": WordMeaning("†", "crashed", "the process died", bad=True),
    "failed": WordMeaning("!", "failed", "raised an error", bad=True),
    "timed_out": WordMeaning("◷", "timed out", "no answer within the time limit", bad=True),
    "unsupported": WordMeaning("∅", "unsupported", "the backend cannot do this"),
    "skipped": WordMeaning("»", "skipped", "not tried: too slow, a smaller size failed, or no such device"),
    "not_run": WordMeaning("·", "not run", "not part of this run"),
}
"""In the order of the legend: measured cells first, then by weight. Only "right" cells are ranked.

Only older files have "inconclusive".
"""


def legend(word: Word) -> str:
    """The sign and label of a word, where signs are explained: "~k right to k digits" for all numbers of digits."""
    outcome = OUTCOMES[word]
    return f"{outcome.sign}k right to k digits" if word == "verified" else f"{outcome.sign} {outcome.label}"


SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"), (1e-12, "ps"))
BYTES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def seconds(value: float) -> str:
    """Three significant digits with a unit: 1.2345e-6 -> "1.23 µs". A 0 is what the clock could not see."""
    if value == 0:
        return "< 1\u00a0ns"
    return _with_unit(value, SECONDS)


def seconds_range(low: float, high: float, like: float) -> str:
    """A spread in the unit that `like` is printed in, without repeating it: "1.21–1.27"."""
    scale, _ = _unit(like, SECONDS)
    texts = [digits(x / scale) for x in (low, high)]
    return texts[0] if texts[0] == texts[1] else "–".join(texts)


def byte_size(value: float) -> str:
    """Decimal units: 4_512_345 -> "4.51 MB"; whole bytes below a kilobyte."""
    if 0 <= value < 999.5:
        return f"{value:.0f} B"
    return _with_unit(value, BYTES)


def ratio(value: float) -> str:
    """How many times as much: 3.218 -> "3.2×"."""
    return f"{digits(value, 2)}×"


def slowdown(value: float) -> str:
    """A time relative to the fastest: 1.0 -> "1.0", 1.04 -> "1.04", 9.87 -> "9.9", 4123 -> "4 100"."""
    if not math.isfinite(value) or value <= 0:
        return MISSING
    if 1.0005 <= value < 1.095:
        return f"{value:.2f}"
    rounded = float(f"{value:.1e}")
    return count(round(rounded)) if 10 <= rounded < 1e5 else digits(rounded, 2)


def between(found: Interval) -> str:
    """A ratio with its interval, in as many digits as that gives: "1.053 (1.045–1.063)"."""
    low, high = found.low, found.high
    texts = [digits(x, 3) for x in (found.estimate, low, high)]
    if 1e-3 <= found.estimate < 1e4 and high - low > 1e-6 * found.estimate:
        size = math.floor(math.log10(found.estimate))
        decimals = max(min(math.ceil(0.5 - math.log10(high - low)), 3 - size), 1 - size, 0)
        texts = [f"{x:.{decimals}f}" for x in (found.estimate, low, high)]
    return f"{texts[0]} ({texts[1]}–{texts[2]})"


def times(found: Interval) -> str:
    """The same as a factor: "1.053× (1.045–1.063)"."""
    return between(found).replace(" (", "× (", 1)


def power(b: Interval) -> str:
    """An exponent with its interval; "to" where a minus after a dash is hard to read: "n^−0.01 (−0.03 to 0.02)"."""
    estimate, low, high = (f"{round(x, 2) + 0.0:.2f}".replace("-", "−") for x in (b.estimate, b.low, b.high))
    return f"n^{estimate} ({low}{' to ' if low.startswith('−') else '–'}{high})"


def moment(created: str, zone: tzinfo | None = UTC, *, clock: bool = True) -> str:
    """A time in ISO 8601 as one reads it: "24 Nov 2026, 22:59 UTC", or its day alone; any other text as it is.

    A zone of None is that of this machine.
    """
    try:
        found = datetime.fromisoformat(created).astimezone(zone)
    except (ValueError, OverflowError, OSError):
        return short(created, 40)
    return f"{found.day} {found:{'%b %Y, %H:%M %Z' if clock else '%b %Y'}}"


def percent(share: float) -> str:
    """A share in two digits: 0.00834 -> "0.83 %"."""
    return f"{digits(100 * share, 2)}\u00a0%"


def calls(number: float) -> str:
    """From which call on: whole, or a power of ten; "1 250"."""
    return count(math.ceil(number)) if number < 1e6 else digits(number, 2)


def count(n: int) -> str:
    """A whole number in groups of three: 1000000 -> "1 000 000"."""
    return f"{n:,}".replace(",", "\u202f")


def short_count(n: int) -> str:
    """The same in few columns: large powers of ten as such; 1000000 -> "10⁶"."""
    exponent = len(str(n)) - 1
    return power_of_ten(exponent) if exponent > 4 and n == 10**exponent else count(n)


def tick(value: float, quantity: Literal["seconds", "bytes"]) -> str:
    """A round number on an axis: 2e-5 seconds -> "20 µs"."""
    scale, name = _unit(value, SECONDS if quantity == "seconds" else BYTES)
    number = value / scale
    text = f"{number:g}" if 1e-3 <= number < 1e4 else power_of_ten(round(math.log10(number)))
    return f"{text}\u00a0{name}"


def power_of_ten(exponent: int) -> str:
    """For a logarithmic axis: 0 -> "1", 2 -> "100", 6 -> "10⁶"."""
    return str(10**exponent) if 0 <= exponent < 4 else f"10{str(exponent).translate(SUPERSCRIPTS)}"


def plural(n: int, one: str, many: str | None = None) -> str:
    """plural(1, "cell") -> "1 cell"; plural(3, "cell") -> "3 cells"."""
    return f"{count(n)} {one if n == 1 else many or one + 's'}"


def listed(items: Iterable[str], *, most: int = 6) -> str:
    """ "a, b and c"; past `most` the rest is counted: "a, b and 7 more"."""
    texts = list(items)
    if len(texts) > most:
        texts = [*texts[: most - 1], f"{len(texts) - most + 1} more"]
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def sizes(numbers: Sequence[int]) -> str:
    """Where something happened: "n = 10, 100 and 1 000"."""
    return f"n = {listed(map(count, sorted(numbers)), most=5)}"


ACTING = {"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"}  # categories of Unicode
ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def visible(text: str, *, keep: str = "") -> str:
    """The text with every character shown that would otherwise act: controls, direction marks, unpaired surrogates.

    A name is data: an escape sequence must not colour a terminal, a right-to-left mark must not turn a table round.
    Characters in `keep` (newlines, for the end of stderr) stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        c if c in keep or unicodedata.category(c) not in ACTING else ESCAPES.get(c, f"\\u{{{ord(c):x}}}") for c in text
    )


def short(text: str, most: int) -> str:
    """At most `most` characters, with the middle left out, where names of one family are alike the least."""
    text = visible(text)
    if len(text) <= most:
        return text
    head = (most - 1) // 2
    return f"{text[: most - 1 - head]}…{text[len(text) - head :] if head else ''}"


def _unit(value: float, units: Sequence[tuple[float, str]]) -> tuple[float, str]:
    """The largest unit of which the value, as printed, holds at least one; the smallest where it holds none."""
    size = abs(value) * (1 + 5e-4)  # 999.7 ns prints as 1.00 µs, not as 1000 ns
    return next(((scale, name) for scale, name in units if size >= scale), units[-1])


def _with_unit(value: float, units: Sequence[tuple[float, str]]) -> str:
    if not math.isfinite(value):
        return MISSING
    scale, name = _unit(value, units)
    return f"{digits(value / scale)}\u00a0{name}"


def digits(value: float, significant: int = 3) -> str:
    """Plain digits where they are readable, a power of ten where they are not."""
    if not math.isfinite(value):
        return MISSING
    if value == 0:
        return "0"
    mantissa, _, power = f"{value:.{significant - 1}e}".partition("e")
    exponent = int(power)
    if exponent >= 4 or exponent < -3:
        return f"{mantissa}·10{str(exponent).translate(SUPERSCRIPTS)}"
    return f"{value:.{max(significant - 1 - exponent, 0)}f}"
