"""Quantities as people write them."""

from collections.abc import Callable

import pytest

from adbench import UsageError
from adbench.cli.support.options import bytes_of, seconds_of, share_of


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


def test_a_share_is_between_nothing_and_all() -> None:
    for text in ("100%", "2", "1"):
        with pytest.raises(UsageError, match="not a share between 0 and 100 %"):
            share_of(text)
