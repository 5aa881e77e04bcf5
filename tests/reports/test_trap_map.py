"""The heat map of the traps, on the page and in one line, and the reasons of known bugs in the terminal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from adbench.model.backend import KnownBug, KnownBugs, Trap
from adbench.model.record import Record, Run
from adbench.oracle.evidence import EntryEvidence
from adbench.reports.content.cells import Cells
from adbench.reports.content.traps import reasons
from adbench.reports.content.traps.trap_map import Bug, TrapMap, trap_map
from adbench.reports.html import page as html
from adbench.reports.text import terminal
from tests.reports import page, runs

TRAPS = {f"trap_{name}": Trap("kinks" if name < "c" else "powers", f"{name}(x) at 0", "1") for name in "abcd"}
NAN = KnownBug("trap_a", (), "nan", "0/0", "me/mine#7")
SECOND = KnownBug("trap_b", ("hvp", "hessian", "hvp_*"), "0", "the slope of sign is 0", "")
POWER = KnownBug("trap_c", (), "2", "both sides count", "as other/one#8")
KNOWN = KnownBugs({"kinks": 3, "powers": 4}, TRAPS, {"good": (), "bad": (NAN, SECOND, POWER), "fair": (NAN, SECOND)})
LISTED = runs.run([runs.record(backend=name) for name in ("good", "bad", "fair")], known_bugs=KNOWN)


def wrong(got: float = float("nan"), expected: float = 1.0, **changes: Any) -> EntryEvidence:
    low_high = (expected, expected)
    return replace(EntryEvidence("x", (), got, expected, low_high, 0.0, "wrong", 0.0, 12.0), **changes)


def result(
    trap: str,
    backend: str,
    status: Any,
    operator: str = "gradient",
    *,
    entry: EntryEvidence | None = None,
    reason: str = "",
) -> Record:
    found = runs.record(f"trap_{trap}", 1, backend, operator, status=status, seconds=None, reason=reason)
    return replace(found, verdict=replace(runs.verdict("wrong"), worst=entry)) if entry else found


CHECKED = runs.run(
    [
        result("a", "bad", "known", entry=wrong(), reason="nan: 0/0 (me/mine#7). Here: 1 of 1 wrong"),
        result("a", "bad", "known", "hvp", entry=wrong(), reason="nan: 0/0 (me/mine#7). Here: 1 of 1 wrong"),
        result("b", "bad", "ok"),
        result("b", "bad", "known", "hvp", entry=wrong(0.0, 2.0), reason="0: the slope of sign is 0. Here: 1 wrong"),
        result("c", "bad", "wrong", entry=wrong(1.0000001, index=(1,))),
        result("d", "bad", "failed", reason="TypeError: no"),
        *(result(name, "good", "ok") for name in "abc"),
        result("d", "good", "unsupported"),
        *(result(name, "cpp", "unsupported") for name in "abcd"),
    ],
    traps=tuple(TRAPS),
    known_bugs=replace(KNOWN, backends={"bad": (NAN, SECOND, POWER)}),
)


def of(run: Run) -> TrapMap:
    found = trap_map(Cells(run))
    assert found is not None
    return found


def numbers(found: TrapMap) -> dict[str, list[tuple[int, int, int]]]:
    return {r.backend: [(s.wrong, s.others, s.of) for s in (*r.squares, r.total)] for r in found.rows}


def test_the_bugs_of_a_device_are_those_that_were_seen_on_it() -> None:
    mixed = replace(KNOWN, backends={"good": (NAN,), "bad": (NAN, replace(SECOND, device="cuda"), POWER)})
    run = replace(LISTED, known_bugs=mixed)
    on_cuda = replace(run, settings=run.settings | {"device": "cuda"})
    assert numbers(of(run))["bad"][-1] == (2, 0, 7)
    assert numbers(of(on_cuda)) == {"bad": [(0, 1, 3), (0, 0, 4), (0, 1, 7)]}


def test_listed_bugs_are_counted_by_family_and_second_derivatives_apart() -> None:
    found = of(LISTED)
    assert numbers(found) == {"fair": [(1, 1, 3), (0, 0, 4), (1, 1, 7)], "bad": [(1, 1, 3), (1, 0, 4), (2, 1, 7)]}
    assert [[square.level for square in row.squares] for row in found.rows] == [[3, 0], [3, 2]]
    assert found.unlisted == ("good",)
    assert found.sentence == "Known wrong on classical traps: fair 1 · bad 2 of 7"


def test_backends_with_the_same_bugs_share_a_list() -> None:
    found = of(LISTED)
    (kinks,), (powers,) = found.lists["kinks"], found.lists["powers"]
    assert (kinks.backends, powers.backends) == (("bad", "fair"), ("bad",))
    first, second = kinks.bugs
    assert first == Bug("trap_a", "a(x) at 0", "1", "nan", "0/0", "me/mine#7", "", True)
    assert (second.expected, second.got, second.operators) == ("", "0", "all second derivatives")
    assert {row.squares[0].list for row in found.rows} == {kinks.number}
    assert found.rows[0].squares[1].list is None


def test_a_run_that_checked_traps_shows_what_it_found() -> None:
    found = of(CHECKED)
    assert numbers(found) == {"good": [(0, 0, 2), (0, 0, 1), (0, 0, 3)], "bad": [(1, 1, 2), (2, 0, 2), (3, 1, 4)]}
    assert found.unlisted == ("cpp",)
    assert found.sentence == "Wrong on classical traps: good 0 · bad 3 of 4"
    a, b = found.lists["kinks"][0].bugs
    c, d = found.lists["powers"][0].bugs
    assert (a.expected, a.got, a.reason, a.thread, a.word) == ("1", "nan", "0/0", "me/mine#7", "known")
    assert (b.expected, b.got, b.operators, b.is_first) == ("2", "0", "all second derivatives", False)
    assert (c.expected, c.got, c.word) == ("1", "1.0000001 in x[1]", "wrong")  # in six digits it would be 1 too
    assert (d.expected, d.got, d.reason, d.word) == ("1", "failed", "TypeError: no", "failed")


def test_an_entry_at_a_kink_shows_the_interval_and_an_unknown_one_says_so() -> None:
    entries = [wrong(interval=(-1.0, 1.0)), wrong(expected=float("nan"))]
    records = [result("z", f"lib{i}", "wrong", entry=entry) for i, entry in enumerate(entries)]
    found = of(runs.run(records, traps=("trap_z",)))
    assert [group.bugs[0].expected for group in found.lists["traps"]] == ["-1 to 1", "a finite number"]


def test_where_nothing_is_known_of_traps_there_is_no_map() -> None:
    assert trap_map(Cells(runs.run([runs.record()]))) is None
    silent = replace(LISTED, known_bugs=replace(KNOWN, backends={"good": ()}))
    assert trap_map(Cells(silent)) is None
    assert not page.read(html.render(silent)).all("section", id="traps")


def test_an_older_file_has_one_family() -> None:
    run = runs.run([result("sinc", "tape", "wrong", reason="nan")], traps=("trap_sinc",))
    found = of(run)
    assert found.families == (("traps", 1),)
    assert found.lists["traps"][0].bugs[0].function == "What trap_sinc is"


@pytest.mark.parametrize(
    ("thread", "url"),
    [
        ("me/mine#7", "https://github.com/me/mine/issues/7"),
        ("as me/My.repo_1#7", "https://github.com/me/My.repo_1/issues/7"),
        ("javascript:alert(1)", ""),
        ("me/..#7", ""),
        ("me/mine/../../evil#7", ""),
        ("me@evil.org/mine#7", ""),
        ("me/mine#7 ", ""),
        ("mе/mine#7", ""),
        ("me/mine#٧", ""),
        ("", ""),
    ],
)
def test_only_a_thread_on_github_is_a_link(thread: str, url: str) -> None:
    assert Bug("trap_a", "f", "1", "nan", "", thread, "", True).url == url


def test_the_page_links_each_square_to_its_functions_and_threads() -> None:
    found = page.read(html.render(LISTED))
    assert found.one(class_="trap-line").words == "Known wrong on classical traps: fair 1 · bad 2 of 7 details"
    section = found.one("section", id="traps")
    assert [row.one("th").words for row in section.one("tbody").all("tr")] == ["fair", "bad"]
    square = section.one("tbody").all("tr")[1].all("td")[1].one("a")
    assert square.words == "1 +1"
    assert square.attributes["aria-label"] == "1 +1 wrong: bad, kinks"
    heading = section.one("h4", id=square.attributes["href"].removeprefix("#"))
    assert heading.words == "bad and fair"
    items = section.one("details", class_="bugs").all("li")
    assert items[0].words == "a a(x) at 0expected 1, got nan: 0/0. me/mine#7"
    assert items[0].one("a").attributes["href"] == "https://github.com/me/mine/issues/7"
    assert items[1].words == "b b(x) at 0got 0 (all second derivatives): the slope of sign is 0."
    assert items[2].one("a").words == "as in other/one#8"
    assert "Not listed as known" in page.read(html.render(CHECKED)).one("section", id="traps").text


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", '" onclick="alert(1)', "{{ 7 * 7 }}", "\u202eg\x1b[31m"])
def test_hostile_texts_of_files_stay_text(text: str) -> None:
    bug = KnownBug(text, (text,), text, text, f"{text}/x#1")
    known = KnownBugs({text: 1}, {text: Trap(text, text, text)}, {text: (bug,)})
    found = page.read(html.render(runs.run([runs.record(backend=text)], known_bugs=known)))
    section = found.one("section", id="traps")
    assert not section.all("script")
    assert not [e for e in found.all() if any(a.startswith("on") for a in e.attributes)]
    assert not [a for a in section.all("a") if not a.attributes["href"].startswith("#")]
    assert "\u202e" not in section.text
    assert "\x1b" not in section.text


def test_forty_backends_are_light() -> None:
    names = [f"lib{i}" for i in range(40)]
    known = replace(KNOWN, backends=dict.fromkeys(names, (NAN, SECOND, POWER)))
    text = html.render(runs.run([runs.record(backend=name) for name in names], known_bugs=known))
    section = page.read(text).one("section", id="traps")
    assert len(section.all("li")) == 3
    assert len(section.all()) < 40 * 12


def test_the_terminal_prints_reasons_with_their_threads() -> None:
    lines = terminal.table(CHECKED, width=80).splitlines()
    start = lines.index("⊗ bad: known bugs in 2 cases")
    assert lines[start + 1 : start + 3] == ["  nan: 0/0 (me/mine#7): a", "  0: the slope of sign is 0: b"]
    assert lines[start + 3] == "See a function step by step: adbench explain trap_a"


def many(count: int, backends: int = 1) -> Cells:
    def one(number: int, backend: int) -> Record:
        reason = f"nan: the reason number {number // 2} of several more words (me/mine#{number // 2}). Here: 1 wrong"
        return result(f"number_{number:03}_of_many", f"lib{backend}", "known", reason=reason)

    return Cells(runs.run([one(n, b) for b in range(backends) for n in range(count)]))


def test_many_reasons_are_a_dozen_lines_and_all_of_them_on_request() -> None:
    short = list(reasons.lines(many(100), 80, more="--details"))
    assert len(short) == reasons.MOST_LINES
    assert short[1] == "  nan: the reason number 0 of several more … (me/mine#0): number_000_of_many +1"
    assert short[-1] == "  … and 40 more reasons: --details"
    assert all("(me/mine#" in line for line in short[1:-1])
    whole = list(reasons.lines(many(100), 80, details=True))
    assert "number_099_of_many" in "\n".join(whole)
    assert max(map(len, [*short, *whole])) <= 80


def test_many_backends_are_no_wall() -> None:
    assert len(list(reasons.lines(many(20, backends=45), 80))) <= reasons.MOST_IN_ALL
