"""The end of a run in the terminal: a screen that fits, and the details on request; with and without colour."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from adbench.model.record import Record, Relations, Run
from adbench.reports.html import page as html
from adbench.reports.text import terminal
from adbench.reports.text.drawing import NARROWEST
from adbench.reports.text.terminal import Ending
from tests.reports import page, runs

SIX = ("tape_compiled", "tape", "finite_differences", "autograd", "jax", "torch")
CASES = ("normal_log_density", "matrix_product", "lotka_volterra", "log_determinant")


def _records(backends: Sequence[str] = SIX, cases: Sequence[str] = CASES) -> list[Record]:
    """The first backend is the fastest; finite differences are approximate."""
    return [
        runs.record(
            case,
            n,
            backend,
            operator,
            seconds=(4.1**k if operator == "gradient" else 0.5) * 1.5e-6 * n,
            word="approximate" if backend == "finite_differences" else "right",
            memory=runs.memory(),
        )
        for case in cases
        for n in (1, 1000, 100_000)
        for k, backend in enumerate(backends)
        for operator in ("value", "gradient")
    ]


USUAL = runs.run(_records())
ENDING = Ending(Path("out/report.html"), "adbench report out --details", CASES)


def _widest(text: str) -> int:
    return max(cell_len(line) for line in text.splitlines())


def _line(text: str, start: str) -> str:
    """The words of the line that starts so, with those of the lines that continue it."""
    found = re.search(rf"^{re.escape(start)}.*(?:\n  +.*)*", text, re.M)
    return " ".join(found[0].split()) if found else ""


def _lone(*records: Record, width: int = 80, details: bool = False, **changes: object) -> str:
    return terminal.table(runs.run(records, **changes), width=width, details=details)


# The first screen.


def test_it_fits_eighty_columns_and_a_screen_and_ends_with_what_to_type_next() -> None:
    text = terminal.table(USUAL, width=80, ending=ENDING)
    assert _widest(text) <= 80
    assert text.count("\n") <= 26
    assert _line(text, "log_determinant") == "log_determinant 10⁵ ★ 1.0 4.1 69 280 1 200 ≈ 17 150 ms 8.19 kB"
    assert _line(text, "Correct") == "Correct 5 backends in all 12 tests; finite_differences: 12 approximate"
    means = "mean slowdown: tape_compiled 1.0 · tape 4.1"
    assert _line(text, "Fastest").startswith(f"Fastest tape_compiled in 4 of 4 cases; {means}")
    assert _line(text, "Gradient cost").startswith("Gradient cost in function calls: tape_compiled 2.0 · tape 8.2")
    assert text.startswith(
        "Of the libraries in this run, autograd is fastest in all 4 cases and right in\nall. adbench"
    )
    assert _line(text, "Source").endswith("each case's portable one, the same for all libraries")
    lines = text.splitlines()
    page = lines.index("Page           out/report.html")
    assert lines[page + 1] == "Details        adbench report out --details"
    assert lines[page + 2] == "Next           adbench run -c normal_log_density -n 100000 --rigorous"
    assert lines[page + 3] == "               adbench check --function mymodule:f --at 1.0 2.0"


@pytest.mark.parametrize("width", [1, 16, 20, 30, 39, 40, 60, 200])
@pytest.mark.parametrize("details", [False, True])
def test_no_line_is_wider_than_the_terminal(width: int, details: bool) -> None:
    text = terminal.table(USUAL, width=width, details=details)
    assert _widest(text) <= max(width, NARROWEST)
    assert text.count("matr") >= 1


def test_backends_that_do_not_fit_stand_in_further_tables_below() -> None:
    text = terminal.table(runs.run(_records([f"backend_{k:02}" for k in reversed(range(40))], CASES[:1])), width=80)
    assert _widest(text) <= 80
    assert re.search(r"^ +n +39 +38 +37 +36", text, re.M)
    heads = re.findall(r"^ +n +([\d ]+)(?:time)?.*$", text, re.M)
    assert re.findall(r"\d+", " ".join(heads)) == [f"{k:02}" for k in reversed(range(40))]
    assert len(re.findall(r"^normal_lo", text, re.M)) == len(heads) > 3, "each names its cases"
    assert "Fastest        backend_39 in 1 of 1 case;" in text


def test_our_own_engine_is_marked_and_left_out_of_the_ranking_on_request() -> None:
    every, others = (terminal.table(USUAL, width=80, without_own=without) for without in (False, True))
    assert re.search(r"^ +n +compiled +◆tape +autograd ", every, re.M)
    assert "◆ adbench's own engine; --without-own ranks without it" in every
    assert "tape" not in others
    assert "◆" not in others
    assert _line(others, "log_determinant") == "log_determinant 10⁵ ★ 1.0 4.1 17 ≈ 0.24 10.3 s 8.19 kB"
    assert _line(others, "Fastest").startswith("Fastest autograd in 4 of 4 cases; mean slowdown: autograd 1.0")
    assert "◆" in terminal.table(USUAL, width=80, details=True)
    assert "tape" not in terminal.table(USUAL, width=80, details=True, without_own=True)


def test_failures_of_our_own_engine_are_printed_even_if_it_is_not_ranked() -> None:
    text = terminal.table(runs.run([runs.record(word="wrong"), runs.record(backend="jax")]), without_own=True)
    assert text.startswith("✗ wrong: tape, quadratic")


def test_a_run_with_our_own_engine_alone_is_ranked() -> None:
    assert "quadratic" in terminal.table(runs.run([runs.record()]), width=80, without_own=True)


def test_idiomatic_source_is_named() -> None:
    native = replace(runs.record(backend="jax_native"), text="native")
    text = _lone(runs.record(backend="jax"), native)
    assert _line(text, "Source").endswith("; jax_native also one in the library's own style")


def test_a_tie_and_a_winner_have_their_signs_and_the_others_plain_numbers() -> None:
    shaky = runs.record(backend="shaky", seconds=0.99e-6, wobble=0.1)
    text = _lone(*runs.race([("tape", 1e-6), ("slow", 4.123e-3)]), shaky)
    assert re.search(r"^quadratic +10 +☆ 1.0 +☆ 1.\d+ +4\s[12]00 ", text, re.M)
    assert "★" not in text
    assert "☆ correct, tied for fastest" in text
    assert "tied in 1 case: nobody is significantly faster than all others" in _line(text, "Fastest")


@pytest.mark.parametrize("word", ["approximate", "verified", "blind", "inconclusive", "wrong", None])
def test_nothing_but_right_gets_a_star(word: str | None) -> None:
    quick = runs.record(backend="quick", word=word, seconds=1e-9)
    text = _lone(quick, *runs.race([("tape", 3e-6), ("jax", 1e-6)]))
    assert re.search(r"^ +n +jax +◆tape +quick", text, re.M)
    assert text.count("★") == 2  # in the table and in the legend
    assert _line(text, "quadratic").startswith("quadratic 10 ★ 1.0 3.0 ")


def test_with_too_few_launches_there_is_neither_a_star_nor_a_tie() -> None:
    times = {"a": 1e-6, "b": 9e-6}
    few = [replace(runs.record(backend=name), time=runs.time(times[name], launches=3)) for name in times]
    text = _lone(*few, runs.record(size=20))
    assert _line(text, "quadratic").startswith("quadratic 10 1.0 9.0 –")
    assert "– not measured" in text
    assert _line(text, "Fastest").startswith("Fastest unknown: too few launches to compare; mean slowdown: a 1.0")


def test_a_right_result_without_a_time_has_its_reason() -> None:
    slow = replace(runs.record(backend="b", seconds=None), reason="not timed: about 2 s per call is over the limit")
    records = [*runs.race([("a", 1e-6)]), slow]
    assert _line(_lone(*records), "Not timed") == (
        "Not timed b 1 of 1 result; b on quadratic: about 2 s per call is over the limit"
    )
    assert "— b: about 2 s per call is over the limit [quadratic, n = 10]" in _lone(*records, details=True)
    found = page.read(html.render(runs.run(records)))
    link = found.one("table", class_="map").one("td", class_="right").one("a").attributes["href"]
    assert "b: about 2 s per call is over the limit" in found.one("li", id=link.removeprefix("#")).words


def test_no_star_below_the_noise_floor() -> None:
    """Two processes of tape differ by a fifth: a certain difference of a tenth is a tie, one of a half is not."""

    def line(seconds: float, wobble: float) -> str:
        first, second = runs.race([("tape", 1e-6), ("other", seconds)])
        return _line(_lone(replace(first, control=runs.time(1e-6, wobble=wobble)), second), "quadratic")

    assert "★ 1.0 1.1" in line(1.1e-6, 0.0)
    assert "☆ 1.0 ☆ 1.1" in line(1.1e-6, 0.2)
    assert "★ 1.0 1.5" in line(1.5e-6, 0.2)


def test_the_noise_is_one_line_and_the_remedy_comes_once_at_the_end() -> None:
    first, second = runs.race([("tape", 2e-6), ("fast", 1e-6)], case="matrix_product")
    quiet, noisy = (
        terminal.table(runs.run([replace(first, control=runs.time(2e-6, wobble=w)), second]), width=80, ending=ENDING)
        for w in (0.004, 0.2)
    )
    assert _line(quiet, "Noise").startswith("Noise two runs of identical code differed by 0.40 %; ignore smaller")
    assert "doctor" not in quiet
    assert noisy.count("adbench doctor") == 1
    assert noisy.splitlines()[-2:] == [
        "Next           adbench doctor  # find out what makes this machine noisy",
        "               adbench run -c matrix_product -n 10 --rigorous",
    ]
    assert "Noise          unknown: no correct result was measured twice" in terminal.table(USUAL, width=80)


def test_suggested_commands_keep_the_type_and_the_device_of_the_run() -> None:
    settings = {"quick": True, "dtype": "float32", "device": "cuda"}
    text = terminal.table(replace(USUAL, settings=settings), width=80, ending=ENDING)
    commands = [line for line in text.splitlines() if " adbench run" in line]
    assert len(commands) == 2
    assert all("--dtype float32 --device cuda" in command for command in commands)


def test_a_user_s_own_case_and_a_rigorous_run_are_not_suggested_again() -> None:
    own = terminal.table(USUAL, width=80, ending=Ending(more="x", cases=("other",)))
    many = terminal.table(replace(USUAL, settings={"launches": 20}), width=80, ending=ENDING)
    assert "--rigorous" not in own + many
    assert "adbench list backends" in own
    assert "--function mymodule:f" not in own


# Errors.


def test_errors_come_first_with_a_command_that_repeats_them() -> None:
    again = "print('wrong again')"
    wrong = [replace(runs.record(size=n, status="wrong", reason="x is off"), reproduce=again) for n in (10, 20, 30)]
    crash = runs.record(backend="bad", status="crashed", reason="died of SIGSEGV")
    for details in (False, True):
        lines = _lone(runs.record(backend="good"), crash, *wrong, details=details).splitlines()
        assert lines[:5] == [
            "✗ wrong: tape, quadratic n = 10 gradient: x is off",
            f'  reproduce: python -c "{again}"',
            "  and 2 more results",
            "† crashed: bad, quadratic n = 10 gradient: died of SIGSEGV",
            "",
        ]


@pytest.mark.parametrize("text", ["it's", '"$HOME" `ls` !', "\\"])
def test_the_command_is_what_a_shell_reads_back(text: str) -> None:
    line = f"print({text!r})"
    (shown,) = re.findall("reproduce: (.*)", _lone(replace(runs.record(status="wrong"), reproduce=line)))
    assert shlex.split(shown)[2] == line
    run = [sys.executable, *shlex.split(shown)[1:]]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == f"{text}\n"


def test_hundreds_of_failures_are_counted_and_all_are_in_the_details() -> None:
    records = [
        runs.record(size=n, backend=f"b{k}", status="failed", reason=f"reason {k}.{n}")
        for n in range(1, 11)
        for k in range(30)
    ]
    text, details = (_lone(*records, details=wanted) for wanted in (False, True))
    assert text.count("reason") == 5
    assert "… and 25 more kinds of failure" in text
    assert details.count("reason") >= 300


# The line of each kind of gap, and the details.


def test_unsupported_skipped_and_known_bugs_are_one_line_each() -> None:
    told = "nan: as everybody knows"
    records = [
        *(runs.record(size=n) for n in (1, 2)),
        *(runs.record(size=n, backend="poor", status="unsupported", reason="no loops") for n in (1, 2)),
        runs.record(case="trap_sinc", size=1, status="known", reason=told),
        runs.record(case="trap_sinc", size=1, operator="value", status="known", reason=told),
        runs.record(case="trap_sqrt", size=1, status="surprise", reason="right, but its file says otherwise"),
    ]
    traps = ("trap_sinc", "trap_sqrt")
    text, details = (_lone(*records, details=wanted, traps=traps) for wanted in (False, True))
    assert _line(text, "Wrong on traps") == "Wrong on traps tape 1 of 2 classical traps"
    assert _line(text, "Unsupported") == "Unsupported poor 2 of 5 results"
    assert _line(text, "Now correct") == "Now correct tape 1 of 5 results, although listed as known bugs"
    assert "‽ tape: right, but its file says otherwise" in details
    assert told not in text
    assert "no loops" not in text
    assert f"⊗ tape: known bugs in 1 case\n  {told}: sinc\n" in details
    assert "∅ poor: no loops [2 cells]" in details
    assert re.search(r"^sinc +⊗", details, re.M)


def test_relations_between_calls_are_no_operator_and_have_their_own_line() -> None:
    """They hold or they do not: neither an unchecked result nor an operator more."""
    held = Relations(held=7, broken=("twice: 1, not 2",))
    laws = replace(runs.record(operator="relations", word=None), relations=held)
    checked = [replace(record, time=None, summary=None) for record in (runs.record(), laws)]
    text = _lone(*checked)
    assert text.startswith("Checked gradient on 1 case\n")
    assert "unchecked" not in text
    assert _line(text, "Relations") == "Relations 7 of 8 relations between calls hold"
    assert "Checked: gradient\n" in _lone(*checked, details=True)


def test_the_details_say_why_a_result_cannot_be_judged() -> None:
    blind = runs.record(word="blind")
    assert blind.verdict is not None
    reason = blind.verdict.sentence.removeprefix("blind: ")
    assert _line(_lone(blind, details=True), "? tape") == f"? tape: {reason} [quadratic, n = 10]"


def test_what_to_type_next_keeps_the_user_s_backends_and_cases() -> None:
    mine = {"-c": ("my case.py",), "-b": ("my_backend.py", "tape")}
    timed = terminal.table(USUAL, width=80, ending=ENDING._replace(chosen=mine))
    assert "Next           adbench run -c normal_log_density -n 100000 -b my_backend.py -b tape --rigorous\n" in timed
    checked = [replace(record, time=None, summary=None) for record in USUAL.records]
    text = terminal.table(runs.run(checked), width=120, ending=ENDING._replace(chosen=mine))
    assert "Next           adbench run --quick -c 'my case.py' -b my_backend.py -b tape  # measure" in text


def test_a_function_with_an_array_as_value_leads_with_its_jacobian() -> None:
    records = [runs.record(operator=operator) for operator in ("value", "jacobian", "vjp")]
    assert "\nSlowdown of the jacobian relative to the fastest" in _lone(*records)


def test_libraries_that_are_not_installed_are_one_line_with_the_command() -> None:
    one = _lone(runs.record(), not_installed={"jax": "autodiff-bench[jax]"})
    assert _line(one, "Install") == "Install 1 more library: pip install 'autodiff-bench[jax]'"
    missing = {"jax": "autodiff-bench[jax]", "torch": "autodiff-bench[torch]", "mygrad": "mygrad"}
    many = _line(_lone(runs.record(), not_installed=missing), "Install")
    assert many == "Install 3 more libraries: pip install 'autodiff-bench[jax,torch]' mygrad"
    assert "Install" not in _lone(runs.record())


@pytest.mark.parametrize(
    ("run", "says", "in_detail"),
    [
        (runs.run(), "Nothing was measured", "Nothing was measured"),
        (runs.run([runs.record(seconds=None)]), "Checked gradient on 1 case", "Checked: gradient"),
        (runs.run([runs.record(seconds=None), runs.record(backend="b")]), " – ", "— not timed"),
        (runs.run([runs.record(status="unsupported", reason="no qr")]), "∅ unsupp.", "∅ tape: no qr"),
        (runs.run([runs.record(seconds=1e-12), runs.record(backend="b", seconds=1e12)]), "10²⁴", "1.00·10¹² s"),
    ],
    ids=["empty", "nothing timed", "one not timed", "unsupported", "extremes"],
)
def test_a_run_of_little_says_so(run: Run, says: str, in_detail: str) -> None:
    assert says in terminal.table(run, width=80)
    assert in_detail in terminal.table(run, width=80, details=True)


def test_a_check_counts_the_results_of_each_backend_worst_first() -> None:
    records = [
        *(runs.record(backend=b, operator=op, seconds=None) for b in ("good", "bad") for op in ("value", "jvp", "vjp")),
        runs.record(backend="bad", operator="hvp", status="wrong", reason="sign flipped"),
        runs.record(backend="good", operator="hvp", status="unsupported", reason="no hvp"),
    ]
    lines = _lone(*records).splitlines()
    assert lines[0] == "✗ wrong: bad, quadratic n = 10 hvp: sign flipped"
    assert [line.split() for line in lines if re.match("good|bad", line)] == [
        ["bad", "3", "1", "–"],
        ["good", "3", "–", "1"],
    ]
    narrow = _lone(*records, width=24)
    assert _widest(narrow) <= 24
    assert "∅ unsupported" in narrow  # a legend, as the heads are signs


def test_a_check_says_in_detail_what_each_backend_has_of_each_operator() -> None:
    records = [
        runs.record(operator="value", seconds=None),
        replace(runs.record(operator="jvp", seconds=None), how="from gradient"),
        runs.record(operator="hvp", status="unsupported", reason="no hvp"),
    ]
    text = _lone(*records, details=True)
    assert re.search(r"^value +native$", text, re.M)
    assert re.search(r"^jvp +from gradient$", text, re.M)
    assert re.search(r"^hvp +∅ no$", text, re.M)


def test_digits_proofs_and_declined_relations_are_told() -> None:
    words = ("right", "verified", "blind", "inconclusive")
    checked = [runs.record(backend=word, word=word, seconds=None) for word in words]
    details = _lone(*checked, width=120, details=True)
    assert all(text in details for text in ("~ 6 digits", "? blind", "~k right to k digits", "? unsure"))
    timed = [runs.record(backend=word, word=word) for word in words]
    assert _line(_lone(*timed), "quadratic").startswith("quadratic 10 ✓ ~6 1.0 ? 1.0 ? 1.0")
    assert "~6 1.00 µs" in _lone(*timed, width=120, details=True)
    assert "~6" in _lone(*checked, width=120, details=True, traps=("quadratic",))
    proved = replace(checked[0], verdict=replace(runs.verdict(), proved=True))
    assert _line(_lone(proved, checked[1]), "Proved") == "Proved 1 of 2 expected values"
    assert "Compared with proved values: 1 of 2 results." in _lone(proved, checked[1], details=True)
    about = Relations(3, declined={"thread": "its stack belongs to one thread"})
    asked = replace(runs.record(operator="relations", word=None, seconds=None), relations=about)
    assert "∅ tape: thread: its stack belongs to one thread [relations]" in _lone(runs.record(), asked, details=True)


@pytest.mark.parametrize("width", [40, 80, 160])
def test_forty_backends_are_told_in_detail_case_by_case_the_fastest_first(width: int) -> None:
    records = [runs.record(backend=f"backend_{k:02}", seconds=(41 - k) * 1e-6) for k in range(38)]
    records += [runs.record(backend=f"lacking_{k}", status="unsupported", reason="no loops") for k in range(2)]
    text = _lone(*records, width=width, details=True)
    assert _widest(text) <= width
    told = re.findall(r"[★✓] backend_(\d\d) [\d.]+ µs", text)
    assert told == [f"{k:02}" for k in reversed(range(38))]
    assert "★ backend_37 4.00 µs" in text
    assert "∅ unsupp.: lacking_0" in text


# Colour.


@pytest.mark.parametrize("details", [False, True])
def test_colour_is_added_only_on_request_and_changes_no_character(details: bool) -> None:
    plain, coloured = (
        terminal.table(USUAL, width=80, colour=colour, details=details, ending=ENDING) for colour in (False, True)
    )
    assert "\x1b" not in plain
    assert "\x1b[" in coloured
    bare = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [line.rstrip() for line in bare.splitlines()] == plain.splitlines()


def test_the_environment_does_not_change_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = terminal.table(USUAL, width=80)
    for name, value in {"FORCE_COLOR": "1", "COLUMNS": "20", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
        assert terminal.table(USUAL, width=80) == expected
