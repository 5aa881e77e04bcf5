"""The run inside its own page: compressed, so that the file that people pass on holds what was measured."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable
from dataclasses import replace

from adbench.model.record import Round, Run, Time
from adbench.results.store import dumps

MOST_BYTES = 600_000
"""Of the compressed run in the page; a run of more is embedded with one round for each launch."""


def embedded(run: Run) -> tuple[str, bool]:
    """The run as its `run.json`, the same text for the same run; and whether every round is in it.

    It is gzip in base64, which no browser can take for anything else.
    """
    text = packed(dumps(run))
    is_whole = len(text) <= MOST_BYTES
    return (text if is_whole else packed(dumps(without_rounds(run)))), is_whole


def without_rounds(run: Run) -> Run:
    """The run with one round of each launch, that in the middle: a valid run, with nearly the same medians."""
    records, threaded = (
        tuple(replace(r, time=_thinned(r.time), control=_thinned(r.control)) for r in some)
        for some in (run.records, run.threaded)
    )
    return replace(run, records=records, threaded=threaded)


def plain_json(value: object) -> str:
    """JSON that cannot end the element around it: `<`, `>` and `&` are escaped."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def packed(text: str) -> str:
    """gzip in base64."""
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def _thinned(time: Time | None) -> Time | None:
    """The time with the middle round of each launch, if it has any."""
    return time and Time(tuple(replace(launch, rounds=_middle(launch.rounds)) for launch in time.launches))


def _middle(rounds: Iterable[Round]) -> tuple[Round, ...]:
    ordered = sorted((r for r in rounds if r.calls > 0), key=lambda r: r.ns / r.calls)
    return (ordered[(len(ordered) - 1) // 2],) if ordered else ()
