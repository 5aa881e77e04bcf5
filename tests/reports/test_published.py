"""The page that sets our ratios beside the published ones: figures come from runs, and what no run has is a dash."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from adbench.catalog.discovery import catalog
from scripts import published
from tests.reports import runs

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "published.md"


def line_of(text: str, start: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(start))


def test_prices_and_ratios_are_those_of_the_runs_and_the_rest_is_a_dash() -> None:
    first = runs.run(
        [
            runs.record("recurrence", 1, "tape", "gradient", seconds=6e-6),
            runs.record("recurrence", 1, "tape", "value", seconds=2e-6),
        ]
    )
    second = runs.run(
        [
            runs.record("sums", 1000, "stan_math", seconds=1e-6),
            runs.record("sums", 1000, "cppad", seconds=4e-6),
            runs.record("sums", 1000, "adolc", status="wrong"),
        ]
    )
    text = published.render([first, second])
    pqr, ours = line_of(text, "| `recurrence`, one number |"), line_of(text, "| `sums` | figure |")
    assert pqr.startswith("| `recurrence`, one number | 3.3× | `tape` 3.00×")
    assert pqr.endswith("; `stan_math` —; `cpp_hand` — |")
    assert ours.startswith("| `sums` | figure | `cppad` / `stan_math` 4.00×")
    assert ours.endswith("; `sacado` / `stan_math` —; `adolc` / `stan_math` — |")


def test_a_noisy_session_is_called_so() -> None:
    record = replace(runs.record(), control=runs.time(wobble=0.3))
    assert "a noisy session" in published.render([runs.run([record])])
    quiet = replace(runs.record(), control=runs.time())
    assert "a noisy session" not in published.render([runs.run([quiet])])


def test_every_figure_is_of_a_case_and_a_backend_that_there_are() -> None:
    known = catalog()
    figures = [figure for claim in published.CLAIMS for row in claim.rows for figure in row.ours]
    assert len(figures) > 40
    for figure in figures:
        assert figure.case in known.cases
        assert known.cases[figure.case].accepts(figure.size)
        names = [figure.backend] if isinstance(figure, published.Price) else [figure.slow, figure.fast]
        assert set(names) <= set(known.backends)


def test_the_page_holds_every_claim_with_its_reason() -> None:
    text = " ".join(PAGE.read_text("utf-8").split())
    for claim in published.CLAIMS:
        for part in (f"## {claim.title}", " ".join(claim.source.split()), " ".join(claim.why.split())):
            assert part in text, f"{part[:60]}: python -m scripts.published RUN... > docs/reference/published.md"
        for row in claim.rows:
            assert f"| {row.what} | {row.published} |" in text
