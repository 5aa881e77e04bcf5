"""Quantities as people write them."""

from collections.abc import Callable

import pytest

from adbench import UsageError
from adbench.cli.support.options import bytes_of, margins_of, seconds_of, share_of


@pytest.mark.parametrize(
    ("text", "size"), [("4G", 4 * 2**30), ("512m", 2**29), ("1.5GiB", 3 * 2**29), ("100 kB", 102_400), ("7", 7)]
)
def test_amounts_of_memory(text: str, size: int) -> None:
    assert bytes_of(text) == size


@pytest.mark.parametrize(
    ("text", "seconds"), [("40s", 40), ("10m", 600), ("90", 90), ("1h30m", 5400), ("2 min", 120), ("500ms", 0.5)]
)
def test_durations(text: str, seconds: float) -> None:
    assert seconds_of(text) == pytest.approx(seconds)


@pytest.mark.parametrize(("text", "share"), [("2%", 0.02), ("0.05", 0.05), (".5 %", 0.005)])
def test_shares(text: str, share: float) -> None:
    assert share_of(text) == pytest.approx(share)


@pytest.mark.parametrize("read", [bytes_of, seconds_of, share_of])
@pytest.mark.parametrize("text", ["", "-1", "abc", "nan", "inf", "0", "0G", "1e3", "٣", "4X", "1 2", "1h30", "%"])
def test_anything_else_is_refused_in_one_line(read: Callable[[str], float], text: str) -> None:
    with pytest.raises(UsageError, match="write ") as caught:
        read(text)
    assert "\n" not in str(caught.value)


def test_a_share_above_all_needs_its_sign() -> None:
    """`--margin 5` is more often a slip for 5 % than meant as 500 %."""
    assert share_of("150%") == pytest.approx(1.5)
    for text in ("2", "1", "1000000%"):
        with pytest.raises(UsageError, match="not a share above 0"):
            share_of(text)


def test_margins_are_one_for_all_and_others_by_name() -> None:
    assert margins_of(["5%"]) == (0.05, {})
    assert margins_of(["a=b[1]=50%", "10%", "test_*=200%"]) == (0.1, {"a=b[1]": 0.5, "test_*": 2.0})
    assert margins_of(["f=1%"]) == (None, {"f": 0.01})
    for text in ("=5%", "f=", "f=x", "f"):
        with pytest.raises(UsageError, match="write"):
            margins_of([text])
