"""The table at the end of a run: readable in 80 and in 60 columns, with and without colour."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from rich.cells import cell_len

from adbench.model.record import Relations, Run
from reports.text import terminal
from reports.text.drawing import NARROWEST
from tests.reports import runs

FIVE = ("tape", "finite_differences", "autograd", "jax", "torch")
USUAL = runs.run(
    [
        runs.record(
            case,
            n,
            backend,
            seconds=(k + 1) * 1.5e-6 * n,
            word="approximate" if backend == "finite_differences" else "right",
        )
        for case in ("normal_log_density", "matrix_product")
        for n in (1, 1000, 1_000_000)
        for k, backend in enumerate(FIVE)
    ]
)


def _widest(text: str) -> int:
    return max(cell_len(line) for line in text.splitlines())


@pytest.mark.parametrize("width", [60, 80, 200])
def test_five_backends_fit_side_by_side(width: int) -> None:
    text = terminal.table(USUAL, width=width)
    assert _widest(text) <= width
    if width >= 80:
        assert len(re.findall(r"^1 000 000 .*ms.*ms|^1 000 000 .*s", text, flags=re.M)) == 2


@pytest.mark.parametrize("width", [1, 16, 20, 30, 45])
def test_a_narrow_terminal_gets_the_backends_below_each_other(width: int) -> None:
    text = terminal.table(USUAL, width=width)
    assert _widest(text) <= max(width, NARROWEST)
    assert text.count("matr") >= 2


def test_the_fastest_right_result_is_marked_by_a_sign() -> None:
    text = terminal.table(runs.run(runs.race([("tape", 3e-6), ("jax", 1e-6)])), width=80)
    assert "★ 1.00 µs" in text
    assert "✓ 3.00 µs" in text
    assert "★ right and fastest" in text


@pytest.mark.parametrize("word", ["approximate", "verified", "blind", "inconclusive", "wrong", None])
def test_nothing_but_right_gets_the_mark(word: str | None) -> None:
    quick = runs.record(backend="quick", word=word, seconds=1e-9)
    text = terminal.table(runs.run([quick, *runs.race([("tape", 3e-6), ("jax", 1e-6)])]), width=80)
    assert text.count("★") == 2  # in the table and in the legend
    assert "★ 1.00 ns" not in text


def test_a_wrong_result_shows_its_word_and_its_reason_once() -> None:
    records = [runs.record(size=n, backend="liar", status="wrong", reason="sigma is off") for n in (1, 10)]
    text = terminal.table(runs.run([*records, runs.record()]), width=80)
    assert text.count("✗ wrong") == 3  # two cells and the legend
    assert text.count("sigma is off") == 1
    assert "✗ liar: sigma is off [2 cells]" in text


def test_the_legend_explains_the_signs_that_occur_and_no_others() -> None:
    text = terminal.table(runs.run([runs.record(), runs.record(backend="b", status="timed_out")]), width=80)
    assert "◷ timed out" in text
    assert "crashed" not in text


def test_colour_is_added_only_on_request_and_changes_no_character() -> None:
    plain, coloured = (terminal.table(USUAL, width=80, colour=colour) for colour in (False, True))
    assert "\x1b" not in plain
    assert "\x1b[" in coloured
    bare = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [line.rstrip() for line in bare.splitlines()] == plain.splitlines()


def test_the_environment_does_not_change_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = terminal.table(USUAL, width=80)
    for name, value in {"FORCE_COLOR": "1", "COLUMNS": "20", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
        assert terminal.table(USUAL, width=80) == expected


@pytest.mark.parametrize(
    ("run", "says"),
    [
        (runs.run(), "Nothing was measured"),
        (runs.run([runs.record(seconds=None)]), "Checked: gradient"),
        (runs.run([runs.record(seconds=None), runs.record(backend="other")]), "— not timed"),
        (runs.run([runs.record(status="unsupported", reason="no cholesky")]), "∅ tape: no cholesky"),
        (runs.run([runs.record(seconds=1e-12), runs.record(backend="slow", seconds=1e12)]), "1.00·10¹² s"),
    ],
    ids=["empty", "nothing timed", "one not timed", "unsupported", "extremes"],
)
def test_a_run_of_little_says_so(run: Run, says: str) -> None:
    assert says in terminal.table(run, width=80)


def test_hundreds_of_reasons_are_counted_after_the_first_twenty() -> None:
    records = [runs.record(size=n, status="failed", reason=f"reason {n}") for n in range(1, 301)]
    text = terminal.table(runs.run(records), width=80)
    assert "reason 20 " in text
    assert "reason 21 " not in text
    assert "… and 280 more reasons" in text


def test_traps_have_a_table_of_their_own_and_known_faults_are_counted_not_told() -> None:
    told = "nan: as everybody knows"
    records = [
        runs.record(),
        runs.record(case="trap_sinc", size=1, status="known", reason=told),
        runs.record(case="trap_sqrt", size=1, status="surprise", reason="right, but its file says otherwise"),
    ]
    text = terminal.table(replace(runs.run(records), traps=("trap_sinc", "trap_sqrt")), width=80)
    assert re.search(r"^sinc +⊗", text, re.M)
    assert re.search(r"^sqrt +‽", text, re.M)
    assert told not in text
    assert "⊗ 1 fault is as it is known to be" in text
    assert "right, but its file says otherwise" in text


def test_a_check_shows_what_each_backend_has_of_each_operator() -> None:
    records = [
        runs.record(operator="value", seconds=None),
        runs.record(operator="jvp", seconds=None),
        runs.record(operator="hvp", status="unsupported", reason="no hvp"),
    ]
    records[1] = replace(records[1], how="from gradient")
    text = terminal.table(runs.run(records), width=80)
    assert re.search(r"^value +native$", text, re.M)
    assert re.search(r"^jvp +from gradient$", text, re.M)
    assert re.search(r"^hvp +∅ no$", text, re.M)


def test_what_went_wrong_says_how_to_do_it_again_in_one_line() -> None:
    again = "import adbench; print(adbench.check_cell('quadratic', 10, '/a/long/path/to/mine.py', 'gradient', seed=7))"
    records = [replace(runs.record(status="wrong"), reproduce=again), replace(runs.record(size=20), reproduce=again)]
    lines = terminal.table(runs.run(records), width=60).splitlines()
    assert [line for line in lines if "again" in line] == [f"  again: {again}"]


def test_what_is_not_told_from_the_fastest_is_marked_so() -> None:
    shaky = runs.record(backend="shaky", seconds=0.99e-6, wobble=0.1)
    text = terminal.table(runs.run([*runs.race([("tape", 1e-6), ("slow", 4e-6)]), shaky]), width=80)
    assert "★" not in text
    assert text.count("☆") == 3
    assert "☆ right, not told from the fastest" in text


def test_the_noise_floor_and_the_clocks_loop_are_printed() -> None:
    def session(wobble: float) -> str:
        first, second = runs.race([("tape", 2e-6), ("fast", 1e-6)])
        records = [replace(first, control=runs.time(2e-6, wobble=wobble)), second]
        return " ".join(terminal.table(runs.run(records, loop_overhead_ns=14.2), width=60).split())

    assert "Noise floor 0.40 %, margin 2.0 %. The clock's loop takes 14.2 ns a call." in session(0.004)
    assert "NOISY, nothing should be gated by this run. Noise floor 2" in session(0.2)
    assert "No noise floor: nothing that is right was measured twice" in terminal.table(USUAL, width=200)


@pytest.mark.parametrize("width", [40, 80, 160])
def test_forty_backends_are_told_case_by_case_the_fastest_first(width: int) -> None:
    records = [runs.record(backend=f"backend_{k:02}", seconds=(41 - k) * 1e-6) for k in range(38)]
    records += [runs.record(backend=f"lacking_{k}", status="unsupported", reason="no loops") for k in range(2)]
    text = terminal.table(runs.run(records), width=width)
    assert _widest(text) <= width
    told = re.findall(r"[★✓] backend_(\d\d) [\d.]+ µs", text)
    assert told == [f"{k:02}" for k in reversed(range(38))]
    assert "★ backend_37 4.00 µs" in text
    assert "∅ unsupp.: lacking_0" in text


def test_forty_backends_side_by_side_where_they_fit() -> None:
    records = [runs.record(backend=f"b{k}", seconds=(k + 1) * 1e-6) for k in range(40)]
    text = terminal.table(runs.run(records), width=700)
    assert re.search(r"^10 .*★ 1.00 µs.*40.0 µs$", text, re.M)


def test_a_result_that_is_verified_to_some_digits_shows_how_many() -> None:
    words = ("right", "verified", "blind", "inconclusive")
    checked = [runs.record(backend=word, word=word, seconds=None) for word in words]
    text = terminal.table(runs.run(checked), width=120)
    assert "~ 6 digits" in text
    assert "? blind" in text
    assert "~k right to k digits" in text
    assert "? unsure" in text  # of an older file, as it did
    timed = terminal.table(runs.run([runs.record(backend=word, word=word) for word in words]), width=120)
    assert "~6 1.00 µs" in timed
    assert "? 1.00 µs" in timed
    traps = terminal.table(runs.run(checked, traps=("quadratic",)), width=120)
    assert "~6" in traps


def test_the_table_says_how_many_results_were_compared_with_proved_values() -> None:
    records = [runs.record(backend=name) for name in ("a", "b")]
    proved = replace(records[0], verdict=replace(runs.verdict(), proved=True))
    assert "proved" not in terminal.table(runs.run(records), width=80)
    assert "Compared with proved values: 1 of 2 results." in terminal.table(runs.run([proved, records[1]]), width=80)


def test_relations_that_a_backend_declines_are_shown_with_the_reason() -> None:
    about = Relations(3, declined={"thread": "its stack belongs to one thread"})
    asked = replace(runs.record(operator="relations", word=None, seconds=None), relations=about)
    table = " ".join(terminal.table(runs.run([runs.record(), asked]), width=80).split())
    assert "∅ tape: thread: its stack belongs to one thread [relations]" in table
