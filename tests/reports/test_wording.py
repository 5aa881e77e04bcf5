"""Numbers and names as they are read."""

from __future__ import annotations

import unicodedata
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adbench.measure.statistics import Interval
from adbench.model.record import Status
from adbench.oracle.evidence import in_digits
from adbench.reports.content import formatting


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1.2345e-6, "1.23 µs"),
        (1e-12, "1.00 ps"),
        (1e-15, "0.00100 ps"),
        (1e-18, "1.00·10⁻⁶ ps"),
        (999.4e-9, "999 ns"),
        (999.6e-9, "1.00 µs"),
        (0.5, "500 ms"),
        (60.0, "60.0 s"),
        (1e12, "1.00·10¹² s"),
        (9.996e-3, "10.0 ms"),
        (0.0, "< 1 ns"),
        (float("nan"), "—"),
        (float("inf"), "—"),
    ],
)
def test_seconds_have_three_digits_and_a_unit(seconds: float, text: str) -> None:
    assert formatting.seconds(seconds).replace("\u00a0", " ") == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0.0, "0 B"),
        (512.0, "512 B"),
        (999.6, "1.00 kB"),
        (4_512_345.0, "4.51 MB"),
        (16e9, "16.0 GB"),
        (1e15, "1000 TB"),
    ],
)
def test_bytes_have_decimal_units(size: float, text: str) -> None:
    assert formatting.byte_size(size).replace("\u00a0", " ") == text


def test_a_spread_takes_the_unit_of_its_median() -> None:
    assert formatting.seconds_range(0.9e-6, 1.1e-6, like=1e-6) == "0.900–1.10"
    assert formatting.seconds_range(1e-6, 1e-6, like=1e-6) == "1.00"


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((1.0531, 1.0447, 1.0634), "1.053 (1.045–1.063)"),
        ((0.9988, 0.9781, 1.0079), "0.999 (0.978–1.008)"),
        ((12.34, 11.9, 12.8), "12.3 (11.9–12.8)"),
        ((531.0, 500.0, 560.0), "531 (500–560)"),
        ((2.0, 2.0, 2.0), "2.00 (2.00–2.00)"),
        ((1e-12, 1e-12, 2e-12), "1.00·10⁻¹² (1.00·10⁻¹²–2.00·10⁻¹²)"),
    ],
)
def test_a_ratio_has_the_digits_that_its_interval_gives(ends: tuple[float, float, float], text: str) -> None:
    assert formatting.between(Interval(*ends, 0.96)) == text


def test_an_exponent_has_no_negative_nought() -> None:
    assert formatting.power(Interval(1.002, 0.98, 1.02, 0.96)) == "n^1.00 (0.98–1.02)"
    assert formatting.power(Interval(-0.001, -0.021, 0.02, 0.96)) == "n^0.00 (−0.02 to 0.02)"


def test_no_number_has_more_digits_than_a_float64() -> None:
    assert [in_digits(digits) for digits in (17.0, 16.4, 5.25, 0.0)] == ["exact", "15.9", "5.2", "0.0"]


def test_a_moment_is_read_as_a_date_and_anything_else_stays() -> None:
    assert formatting.moment("2026-11-24T23:59:42+01:00") == "24 Nov 2026, 22:59 UTC"
    assert formatting.moment("2026-11-24T23:59:42+01:00", clock=False) == "24 Nov 2026"
    assert formatting.moment("some day") == "some day"


def test_a_list_reads_as_one_says_it() -> None:
    assert formatting.listed([]) == ""
    assert formatting.listed(["a"]) == "a"
    assert formatting.listed(["a", "b", "c"]) == "a, b and c"
    assert formatting.listed("abcdefgh", most=3) == "a, b and 6 more"


def test_every_status_has_words() -> None:
    assert set(get_args(Status)) - {"ok"} <= set(formatting.OUTCOMES)
    assert set(formatting.OUTCOMES) == set(get_args(formatting.Word))
    # "blind" has the sign that older files' "inconclusive" had.
    signs = [outcome.sign for word, outcome in formatting.OUTCOMES.items() if word != "inconclusive"]
    assert len(signs) == len(set(signs))


@given(st.text(st.characters(codec=None)))
def test_no_character_of_a_visible_text_acts(text: str) -> None:
    shown = formatting.visible(text)
    assert all(c.isprintable() or unicodedata.category(c) == "Zs" for c in shown)
    assert text != shown or not any(unicodedata.category(c) in {"Cc", "Cf", "Cs"} for c in text)
    assert formatting.visible(shown) == shown
    shown.encode()


@given(st.text(), st.integers(1, 50))
def test_a_shortened_text_is_no_longer_than_asked(text: str, most: int) -> None:
    assert len(formatting.short(text, most)) <= most
