"""docs/reference/operations-at-fault.md shows what the stored sweeps of docs/runs found."""

import pytest

from scripts import operations_page


def test_the_page_has_the_faults_of_the_stored_sweeps():
    current = operations_page.PAGE.read_text("utf-8")
    assert operations_page.page() == current, "python -m scripts.operations_page"


@pytest.mark.parametrize(
    ("got", "expected", "shown"),
    [
        ("1.6449340676383375", "1.6449340668482264", ("1.6449340676383375", "1.6449340668482264")),
        ("nan", "-0.0", ("nan", "−0")),
        ("-1.3e-20", "2.00000049", ("−1.3e-20", "2")),
        ("RuntimeError: no rule", "[0.0107421875, -0.5]", ("RuntimeError", "[0.011, −0.5]")),
    ],
)
def test_results_have_the_digits_that_show_the_difference(got, expected, shown):
    assert operations_page._results(got, expected) == shown


def test_compositions_are_named_if_they_are_few():
    two = ["gradient", "hvp_forward_over_reverse", "hvp_reverse_over_reverse"]
    assert operations_page._operators(two) == "gradient, H v (f/r, r/r)"
    assert operations_page._operators([*operations_page.HVP, "value"]) == "H v, value"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.3e100, "1.3e100"),
        (0.999999999999, "0.999999999999"),
        ([-1.0, 0.126], "[−1, 0.126]"),
        ([[1.0, 0.0], [0.0, 1.0]], "I"),
        ([[0.0, 0.0]], "a 1 × 2 matrix of zeros"),
    ],
)
def test_points_are_short(value, text):
    assert operations_page._point(value) == text
