"""Quantities as people write them: `4G`, `10m`, `2%`. Each function raises UsageError in one line for anything else."""

from __future__ import annotations

import re
from collections.abc import Sequence

from adbench.model.errors import UsageError
from adbench.model.settings import MOST_SECONDS, MOST_THREADS

BYTES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
SECONDS = {"": 1.0, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
MOST_SHARE = 1000.0  # a thousand times: 100000 %
_NUMBER = r"(\d+(?:\.\d*)?|\.\d+)"


def bytes_of(text: str) -> int:
    """A positive number of bytes: `4G`, `512M`, `1.5GiB`, `800000000`; the letters stand for powers of 1024."""
    found = re.fullmatch(_NUMBER + r"\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE | re.ASCII)
    size = float(found[1]) * BYTES[found[2].upper()] if found else 0.0
    if not 1 <= size < 2**63:
        raise UsageError(f"{text!r} is not an amount of memory; write 4G or 512M")
    return int(size)


def counts_of(text: str) -> tuple[int, ...]:
    """Positive whole numbers, each once: `1`, `1,2,4`."""
    parts = [part.strip() for part in text.split(",")]
    found = [int(part) if re.fullmatch(r"\d{1,9}", part, re.ASCII) else 0 for part in parts]
    if not 1 <= min(found) <= max(found) <= MOST_THREADS or len(set(found)) < len(found):
        advice = f"write 2, or 1,2,4, at most {MOST_THREADS}"
        raise UsageError(f"{text!r} is not a list of different numbers from 1; {advice}")
    return tuple(found)


def seconds_of(text: str) -> float:
    """A positive duration: `40s`, `10m`, `1h30m`, `90` (seconds)."""
    parts = re.findall(_NUMBER + r"\s*(ms|min|s|m|h|)", text.strip(), re.ASCII)
    whole = re.fullmatch(rf"(?:{_NUMBER}\s*(?:ms|min|s|m|h|)\s*)+", text.strip(), re.ASCII)
    seconds = sum(float(number) * SECONDS[unit] for number, unit in parts) if whole else 0.0
    if not 0 < seconds <= MOST_SECONDS or (len(parts) > 1 and any(not unit for _, unit in parts)):
        fault = "must be above zero" if whole and seconds == 0 else "is not a duration"
        fault = f"is longer than {MOST_SECONDS} s" if seconds > MOST_SECONDS else fault
        raise UsageError(f"{text!r} {fault}; write 40s, 10m or 1h30m")
    return seconds


def share_of(text: str) -> float:
    """A share above 0: `2%`, `150%` or `0.02`. Without % it is below 1, because `5` is more often a slip than 500 %."""
    found = re.fullmatch(_NUMBER + r"\s*(%?)", text.strip(), re.ASCII)
    share = float(found[1]) * (0.01 if found[2] else 1.0) if found else 0.0
    if not 0 < share < (MOST_SHARE if found and found[2] else 1):
        raise UsageError(f"{text!r} is not a share above 0; write 2%, 150% or 0.02")
    return share


def margins_of(texts: Sequence[str]) -> tuple[float | None, dict[str, float]]:
    """The margin of all cells, None without one, and those of names: `5%`, `name=50%`."""
    margin, named = None, {}
    for text in texts:
        name, equals, share = text.rpartition("=")
        if equals and not name:
            raise UsageError(f"{text!r} has no name before '='; write 5% or NAME=50%")
        if equals:
            named[name] = share_of(share)
        else:
            margin = share_of(share)
    return margin, named
