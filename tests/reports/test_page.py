"""The page: complete, sealed, the same for the same run, and it shows what the run holds."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from dataclasses import replace

import pytest

from adbench.model.record import Round, Run, Time
from adbench.model.serialization import from_plain
from adbench.oracle.evidence import EntryEvidence
from adbench.reports.html import page as html
from tests.reports import page, runs

MIXED = runs.run(
    [
        runs.record(size=size, backend=backend, operator=operator, seconds=seconds * size, word=word, memory=memory)
        for size in (1, 10, 100)
        for operator in ("value", "gradient")
        for backend, seconds, word, memory in (
            ("tape", 2e-6, "right", runs.memory()),
            ("fast", 1e-6, "right", runs.memory(None, None, "this system has no clear_refs")),
            ("differences", 1e-8, "approximate", runs.memory()),
            ("unsure", 1e-9, "verified", None),
            ("blind", 1e-9, "blind", None),
        )
    ]
    + [runs.record(size=size, backend="liar", status="wrong", reason="sigma is off by 1 %") for size in (1, 10, 100)]
    + [runs.record(size=1, backend="frail", status="crashed", reason="killed by SIGSEGV", stderr="line 1\nline 2")]
)


@pytest.fixture(scope="module")
def text() -> str:
    return html.render(MIXED)


@pytest.fixture(scope="module")
def mixed(text: str) -> page.Element:
    return page.read(text)


def test_the_same_run_gives_the_same_bytes(text: str) -> None:
    assert html.render(MIXED) == text
    assert html.render(replace(MIXED, records=tuple(replace(r) for r in MIXED.records))) == text


def test_nothing_is_fetched_from_anywhere(mixed: page.Element, text: str) -> None:
    for element in mixed.all():
        assert element.tag not in {
            "link",
            "img",
            "iframe",
            "object",
            "embed",
            "base",
            "form",
            "audio",
            "video",
            "image",
        }
        assert not element.attributes.keys() & {"src", "srcset", "action", "data", "poster", "background", "ping"}
        for name in ("href", "xlink:href"):
            assert element.attributes.get(name, "#").startswith("#")
    style = mixed.one("style").text
    assert "url(" not in style
    assert "@import" not in style
    assert not re.search(r"url\((?!#)", text)


def test_the_policy_allows_the_pages_own_style_and_script_and_nothing_else(mixed: page.Element) -> None:
    policy = mixed.one("meta", **{"http-equiv": "Content-Security-Policy"}).attributes["content"]
    rules = dict(rule.strip().partition(" ")[::2] for rule in policy.split(";"))
    running = [script for script in mixed.all("script") if "type" not in script.attributes]
    assert rules["default-src"] == "'none'"
    assert rules["style-src"] == _hash(mixed.one("style").text)
    assert [rules["script-src"]] == [_hash(script.text) for script in running]
    for element in mixed.all():
        assert "style" not in element.attributes
        assert not [name for name in element.attributes if name.startswith("on")]


def test_every_id_is_unique_and_every_link_has_its_target(mixed: page.Element) -> None:
    ids = [element.attributes["id"] for element in mixed.all() if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    links = {element.attributes["href"].removeprefix("#") for element in mixed.all() if "href" in element.attributes}
    named = {name for e in mixed.all() for name in e.attributes.get("aria-labelledby", "").split()}
    assert links | named <= set(ids)


def test_the_sections_come_in_the_order_in_which_they_are_asked_for(mixed: page.Element) -> None:
    assert [s.attributes["id"] for s in mixed.all("section")] == [
        "cases",
        "verdicts",
        "pairs",
        "cost",
        "memory",
        "phases",
        "operators",
        "failures",
        "machine",
    ]


def test_every_table_has_a_caption_and_every_head_a_scope(mixed: page.Element) -> None:
    for table in mixed.all("table"):
        assert table.one("caption").words
        for head in table.all("th"):
            assert head.attributes["scope"] in {"col", "row", "rowgroup"}


def test_both_colour_schemes_and_paper_are_provided_for(mixed: page.Element) -> None:
    style = mixed.one("style").text
    assert "color-scheme: light dark" in style
    assert re.search(r"--paper: light-dark\(#\w+, #\w+\)", style)
    assert "@media print" in style


def test_the_first_screen_says_who_is_correct_and_how_much_noise_there_is(mixed: page.Element) -> None:
    state = mixed.one("p", class_="state").words
    assert state.startswith("✓ 2 backends correct · ≈ 1 approximate · ✗ 1 wrong · 1 failure · noise unknown")


def _heads(table: page.Element) -> list[str]:
    """The heads of the columns; of a backend its name alone."""
    heads = table.one("thead").all("th")
    return [(head.all("bdi", class_="name") or [head])[0].words for head in heads]


def _map(found: page.Element) -> dict[tuple[str, str], page.Element]:
    """(case, backend) -> its cell of the heat map."""
    table = found.all("table", class_="map")[0]  # the second is without our own engine
    heads = _heads(table)
    rows = table.one("tbody").all("tr")
    return {(r.one("th").words, heads[k + 1]): cell for r in rows for k, cell in enumerate(r.all("td"))}


def test_the_heat_map_has_the_slowdown_of_what_is_ranked_and_the_reason_of_what_is_not(mixed: page.Element) -> None:
    found = _map(mixed)
    assert [backend for _, backend in found] == [
        *("n", "fast", "tape", "differences", "unsure", "blind", "liar", "frail"),
        *("time of the fastest", "memory of the fastest"),
    ]
    assert found["quadratic", "n"].words == "100"
    assert found["quadratic", "fast"].words == "★ 1.0"
    assert found["quadratic", "tape"].words == "2.0"
    assert found["quadratic", "tape"].classes == {"h1", "own"}
    assert found["quadratic", "time of the fastest"].words == "100 µs"
    assert found["quadratic", "tape"].one("a").attributes["href"] == "#case-0"
    assert [found["quadratic", b].words for b in ("differences", "unsure", "blind", "liar")] == ["≈", "~6", "?", "✗"]
    reason = found["quadratic", "differences"].one("a").attributes["href"].removeprefix("#")
    assert runs.SENTENCES["approximate"] in mixed.one("li", id=reason).words


def test_columns_come_in_the_order_of_the_standings_everywhere(mixed: page.Element) -> None:
    whole, without_own = ["fast", "tape", "differences"], ["fast", "differences", "unsure"]
    for table in (table for table in mixed.all("table") if "data-lead" in table.attributes):
        heads = _heads(table)[int(table.attributes["data-lead"]) :][:3]
        if table.attributes.get("data-axis") != "cases":
            assert heads == (without_own if "fast" in heads and "tape" not in heads else whole)


def test_our_own_engine_is_marked_and_a_switch_ranks_without_it(mixed: page.Element) -> None:
    every, others = (mixed.one("div", class_="results").one("div", class_=name) for name in ("every", "without-own"))
    how_to_read, without = (aside.words for aside in mixed.all("aside", class_="how"))
    heads = {head.words for head in every.one("table", class_="map").one("thead").all("th")}
    assert {"◆adbench’s own engine: tape", "fast"} <= heads
    assert "adbench’s own engine, made along with these cases" in how_to_read
    assert "own engine" not in without
    assert "tape" not in _heads(others.one("table", class_="map"))
    assert mixed.one("input", id="without-own").attributes["type"] == "checkbox"
    alone = page.read(html.render(runs.run([runs.record(backend="tape")])))
    assert not alone.all("input", id="without-own")


def test_a_narrow_screen_has_a_line_for_each_backend_with_its_mean_first(mixed: page.Element) -> None:
    table = mixed.all("table", class_="ranks")[0]
    lines = {row.one("bdi").words: [cell.words for cell in row.all("td")] for row in table.one("tbody").all("tr")}
    assert lines["fast"][:2] == ["1.0", "★ 1.0"]
    assert lines["tape"][:2] == ["2.0", "2.0"]
    assert lines["liar"][:2] == ["—", "✗"]


def test_the_title_says_what_the_run_shows() -> None:
    race = runs.race([("jax", 1e-6), ("torch", 2e-6)])
    found = page.read(html.render(runs.run(race)))
    assert (
        found.one("h1").words
        == found.one("head").one("title").words
        == "Speed and correctness of jax and torch on quadratic"
    )
    checked = [runs.record(case=case, seconds=None) for case in ("one", "two", "trap_x")]
    words = page.read(html.render(runs.run(checked, traps=("trap_x",)))).one("h1").words
    assert words == "Correctness of tape on 2 cases and 1 classical trap"


def test_backends_ranked_on_few_cases_stand_apart() -> None:
    common = [r for case in ("one", "two", "three") for r in runs.race([("a", 1e-6), ("b", 3e-6)], case=case)]
    records = [*common, runs.record("one", backend="rare", seconds=2e-6)]
    table = page.read(html.render(runs.run(records))).one("table", class_="map")
    apart = [head.one("bdi").words for head in table.all("th", class_="first-apart")]
    assert apart == ["rare"]
    foot = [[cell.words for cell in row.all("td")][1:4] for row in table.one("tfoot").all("tr")]
    assert foot == [["1.0", "3.0", "2.0"], ["3", "3", "1"]]


def test_a_wrong_result_is_a_banner_with_what_was_got_and_expected_and_the_command() -> None:
    evidence = EntryEvidence("params", (2,), 3.0, 2.0, (2.0, 2.0), 1e-9, "wrong", 0.3, 12.0)
    liar = runs.record(backend="liar", status="wrong")
    assert liar.verdict is not None
    liar = replace(liar, verdict=replace(liar.verdict, worst=evidence), reproduce="adbench check -b liar")
    found = page.read(html.render(runs.run([*runs.race([("tape", 2e-6)]), liar])))
    words = found.one("div", class_="alarm").words
    assert words.startswith("✗ Wrong: liar on quadratic at n = 10 (gradient). params[2]: got 3.0, expected 2.0, ")
    assert "0 of 12 digits correct" in words
    assert found.one("div", class_="alarm").one("pre").text == "adbench check -b liar"
    assert not page.read(html.render(runs.run([runs.record()]))).all("div", class_="alarm")


def test_libraries_that_are_not_installed_are_one_line_with_the_command() -> None:
    missing = {"jax": "autodiff-bench[jax]", "torch": "autodiff-bench[torch]", "mine": "my-library"}
    found = page.read(html.render(runs.run([runs.record()], not_installed=missing))).one("header").words
    assert (
        "3 more libraries are supported (jax, torch, mine): pip install 'autodiff-bench[jax,torch]' my-library" in found
    )
    one = page.read(html.render(runs.run([runs.record()], not_installed={"jax": "autodiff-bench[jax]"})))
    assert "1 more library is supported (jax): pip install 'autodiff-bench[jax]'" in one.one("header").words


def test_a_cell_shows_the_time_with_its_spread_and_the_slowdown(mixed: page.Element) -> None:
    found = page.cell(mixed, "verdicts", "quadratic", "10", "tape")
    assert found.one(class_="figure").words == "20.0 µs"
    assert found.one(class_="spread").words == "19.0–21.0"
    assert found.one(class_="more-figure").words == "2.00× (2.00–2.00)"


def test_only_the_fastest_right_result_has_a_star(mixed: page.Element) -> None:
    crowned = {
        backend
        for backend in ("tape", "fast", "differences", "unsure", "blind", "liar")
        for size in ("1", "10", "100")
        if "★" in page.cell(mixed, "verdicts", "quadratic", size, backend).words
    }
    assert crowned == {"fast"}


def test_the_cost_of_a_gradient_is_a_sentence(mixed: page.Element) -> None:
    words = mixed.one("section", id="cost").one("p", class_="lead").words
    assert words.startswith("Computing a gradient costs 1.0 function calls with fast, 1.0 with tape.")


def test_a_wrong_result_shows_no_time_even_where_it_was_timed() -> None:
    liar = replace(runs.record(backend="liar", status="wrong"), time=runs.time(1e-12), memory=runs.memory())
    found = page.read(html.render(runs.run([liar, runs.record(), runs.record(backend="other", seconds=3e-6)])))
    cell = page.cell(found, "verdicts", "quadratic", "10", "liar")
    assert cell.words.startswith("✗ wrong")
    assert not cell.all(class_="figure")
    assert not found.all("section", id="memory")
    assert "1.00 ps" not in found.one("main").words.replace("\u00a0", " ")


def test_a_gradient_beside_a_wrong_value_is_wrong() -> None:
    records = [
        runs.record(backend="liar", operator="value", status="wrong"),
        runs.record(backend="liar", seconds=1e-9),
        *runs.race([("tape", 2e-6), ("other", 1e-6)]),
    ]
    found = page.read(html.render(runs.run(records)))
    assert page.cell(found, "verdicts", "quadratic", "10", "liar").one(class_="word").words == "✗ wrong"
    assert _map(found)["quadratic", "other"].words == "★ 1.0"
    assert _map(found)["quadratic", "liar"].words == "✗"
    assert "liar: wrong" in found.one("section", id="cases").one("p", class_="left-out").words


def test_an_approximate_result_is_marked_and_explained(mixed: page.Element) -> None:
    found = page.cell(mixed, "verdicts", "quadratic", "1", "differences")
    assert found.one(class_="word").words == "≈ approximate"
    target = found.one("a").attributes["href"].removeprefix("#")
    assert runs.SENTENCES["approximate"] in mixed.one("li", id=target).words


def test_a_result_that_is_not_resolved_shows_its_digits_or_that_it_is_blind(mixed: page.Element) -> None:
    for backend, shown, word in (("unsure", "~ 6 digits", "verified"), ("blind", "? blind", "blind")):
        found = page.cell(mixed, "verdicts", "quadratic", "1", backend)
        assert found.one(class_="word").words == shown
        target = found.one("a").attributes["href"].removeprefix("#")
        assert runs.SENTENCES[word] in mixed.one("li", id=target).words


def test_the_reason_of_a_failure_is_one_link_away_with_the_end_of_stderr(mixed: page.Element) -> None:
    found = page.cell(mixed, "verdicts", "quadratic", "1", "frail")
    note = mixed.one("li", id=found.one("a").attributes["href"].removeprefix("#"))
    assert note.one(class_="reason").words == "killed by SIGSEGV"
    assert note.one("pre").text.strip() == "line 1\nline 2"


def test_a_missing_figure_is_a_dash_with_its_reason_and_never_zero(mixed: page.Element) -> None:
    for method in ("resident peak", "python-visible peak"):
        found = _memory(mixed, method, "fast")
        assert found.words.startswith("—")
        assert "0" not in found.words
        reason = mixed.one("li", id=found.one("a").attributes["href"].removeprefix("#"))
        assert "this system has no clear_refs" in reason.words


def _memory(found: page.Element, method: str, backend: str, size: str = "10") -> page.Element:
    """The cell of the table of memory."""
    table = found.one("div", **{"aria-label": "memory"}).one("table")
    heads = [head.words for head in table.one("thead").all("th")]
    (row,) = (r for r in table.one("tbody").all("tr") if [td.words for td in r.all("td")[:2]] == [size, method])
    return row.all("td")[heads.index(backend) - 1]


def test_memory_is_shown_by_method_with_its_unit_and_a_method_without_figures_is_one_line(mixed: page.Element) -> None:
    assert _memory(mixed, "resident peak", "tape").words == "8.19 kB"
    assert _memory(mixed, "python-visible peak", "tape").words == "1.02 kB"
    section = mixed.one("section", id="memory")
    assert "No allocated peak: memray is not installed." in section.words
    assert len(section.one("tbody").all("tr")) == 6


def test_a_figure_that_is_not_ranked_carries_its_sign_in_every_table(mixed: page.Element) -> None:
    assert "≈" in _memory(mixed, "resident peak", "differences").words
    rows = [r for r in mixed.one("section", id="phases").all("tr") if "differences" in r.words]
    assert rows
    assert all("≈" in cell.words for row in rows for cell in row.all("td")[2:6])


def test_phases_stand_apart(mixed: page.Element) -> None:
    table = mixed.one("section", id="phases").one("table")
    row = next(r for r in table.all("tr") if "tape" in r.words)
    assert [td.words for td in row.all("td")][:6] == ["tape", "100", "500 ms", "100 µs", "10.0 µs", "200 µs"]


def test_the_parts_of_a_preparation_are_told_and_when_it_has_paid() -> None:
    dear, cheap = runs.record(backend="dear", seconds=1e-6), runs.record(backend="cheap", seconds=3e-6)
    assert dear.time is not None
    launches = tuple(replace(x, prepare_seconds=2.0, phases={"compile": 1.5}) for x in dear.time.launches)
    found = page.read(html.render(runs.run([replace(dear, time=Time(launches)), cheap])))
    rows = {r.all("td")[0].words: r.all("td") for r in found.one("section", id="phases").one("tbody").all("tr")}
    assert rows["dear"][3].words == "2.00 s compile 1.50 s"
    assert rows["cheap"][6].words == "earliest first result"
    # 2 s more, and 2 µs less each time: from about the millionth call on.
    assert rows["dear"][6].words == "from call 999\u202f951 compared with cheap".replace("\u202f", " ")


def test_machine_versions_settings_and_seed_are_shown(mixed: page.Element) -> None:
    facts = {row.one("th").words: row.one("td").words for t in mixed.all(class_="facts") for row in t.all("tr")}
    assert facts["processor"] == "a processor"
    assert facts["memory"] == "8.00 GB"
    assert "max mhz" in facts["unknown"]
    assert facts["epoch"] == "4.00 ms"
    assert facts["seed"] == "7"
    assert facts["fast"] == "1.0"
    assert facts["tape"] == "built in"  # its own version is adbench's; llvmlite's is none of it
    (internal,) = (t for t in mixed.all(class_="facts") if t.one("caption").words == "Internal settings")
    assert "epoch" in internal.words
    assert internal.parent is not None
    assert internal.parent.parent is not None
    assert internal.parent.parent.tag == "details"


def test_our_own_backends_are_built_in_and_others_may_have_no_version() -> None:
    unknown = replace(MIXED, versions={"tape": None, "fast": None, "tape_of_mine": None})
    found = page.read(html.render(replace(unknown, sources={"backends/tape_of_mine": "mine.py:1"})))
    facts = {row.one("th").words: row.one("td").words for t in found.all(class_="facts") for row in t.all("tr")}
    assert facts["tape"] == "built in"
    assert facts["fast"] == facts["tape_of_mine"] == html.NO_VERSION


def _held(found: page.Element) -> Run:
    packed = base64.b64decode(found.one("script", id="run").text)
    return from_plain(json.loads(gzip.decompress(packed)), Run)


def test_the_page_holds_the_whole_run(mixed: page.Element) -> None:
    assert _held(mixed) == MIXED
    assert "with every round" in mixed.one("p", class_="download").words


def test_a_large_run_is_held_with_the_middle_round_of_each_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    one = runs.record()
    assert one.time is not None
    rounds = tuple(Round(10, ns) for ns in (50, 20, 90))
    launches = tuple(replace(launch, rounds=rounds) for launch in one.time.launches)
    large = runs.run([replace(one, time=Time(launches))])
    monkeypatch.setattr(html.embedding, "MOST_BYTES", 0)
    found = page.read(html.render(large))
    (record,) = _held(found).records
    assert record.time is not None
    assert {launch.rounds for launch in record.time.launches} == {(Round(10, 50),)}
    assert "one round of each launch" in found.one("p", class_="download").words


def test_noise_is_one_grey_line_and_a_noisy_machine_gets_one_sentence_of_advice() -> None:
    def session(wobble: float) -> page.Element:
        records = runs.race([("tape", 2e-6), ("fast", 1e-6)])
        records[0] = replace(records[0], control=runs.time(2e-6, wobble=wobble))
        return page.read(html.render(runs.run(records, reference_backend="tape")))

    quiet, noisy = session(0.004), session(0.2)
    assert quiet.one("p", class_="state").words.endswith("· noise 0.40 % (smaller differences are ties)")
    assert noisy.one("p", class_="state").words.endswith("· noise 25 % (smaller differences are ties)")
    assert "differed by 0.40 % in the median group" in quiet.one("p", id="noise").words
    assert not quiet.all("p", id="noisy")
    assert "adbench doctor" in noisy.one("p", id="noisy").words


def test_two_that_tie_share_the_lead() -> None:
    shaky = runs.record(backend="shaky", seconds=0.99e-6, wobble=0.1)
    found = page.read(html.render(runs.run([*runs.race([("tape", 1e-6), ("slow", 4e-6)]), shaky])))
    words = {b: page.cell(found, "verdicts", "quadratic", "10", b).words for b in ("tape", "slow", "shaky")}
    assert "★" not in "".join(words.values())
    assert _map(found)["quadratic", "tape"].words == "☆ 1.02"
    ties = [backend for backend, text in words.items() if "☆" in text]
    assert ties == ["tape", "shaky"]
    matrix = found.one("section", id="pairs").all("table", class_="matrix")[0]
    pairs = {
        (row.one("th").words, head.words): cell
        for row in matrix.one("tbody").all("tr")
        for head, cell in zip(matrix.one("thead").all("th")[1:], row.all("td"), strict=True)
    }
    assert pairs["slow", "tape"].classes == {"slower"}
    assert pairs["tape", "slow"].words == "0.2500.250–0.250"
    assert pairs["tape", "shaky"].classes == pairs["shaky", "tape"].classes == {"inconclusive"}
    assert "?" in pairs["tape", "shaky"].words


def test_a_gradient_cost_that_grows_with_n_is_in_the_text() -> None:
    records = [
        runs.record(size=n, backend=b, operator=op, seconds=1e-6 * n ** (2 if (b, op) == ("bad", "gradient") else 1))
        for n in (10, 100, 1000, 10000)
        for b in ("bad", "good")
        for op in ("value", "gradient")
    ]
    found = page.read(html.render(runs.run(records)))
    assert "The cost grows with n for bad on 1 case." in found.one("section", id="cost").words
    trends = next(r for r in found.one("div", **{"aria-label": "cost"}).all("tr") if "trend" in r.words).all("td")
    assert [("grows with n" in td.words) for td in trends[1:]] == [False, True]
    fits = {r.one("th").words: r.all("td") for r in found.one("section", id="cases").one("tbody").all("tr")}
    for td, shown in zip(fits["bad"], ("n^2.00 (2.00–2.00)", "n^1.00 (1.00–1.00)"), strict=False):
        assert td.words.startswith(shown)


def test_bytes_per_operation_stand_below_the_bytes() -> None:
    found = page.read(html.render(runs.run([runs.record(memory=runs.memory())], flops={"quadratic": {"10": 1024.0}})))
    assert _memory(found, "resident peak", "tape").words == "8.19 kB 8.00 B per operation"


def test_traps_have_a_section_of_their_own() -> None:
    records = [runs.record(), runs.record(case="trap_sinc", size=1, status="wrong", reason="nan")]
    found = page.read(html.render(runs.run(records, traps=("trap_sinc",))))
    assert found.one("p", class_="state").words.startswith("✓ 1 backend correct · ≈ 0 approximate · ✗ 0 wrong")
    row = found.one("section", id="traps").one("tbody").one("tr")
    assert [cell.words for cell in row.children] == ["tape", "1 of 1", "1"]


@pytest.mark.parametrize(
    ("run", "says"),
    [
        (runs.run(), "Nothing was measured"),
        (runs.run([runs.record()]), "✓ 1 backend correct"),
        (runs.run([runs.record(status="failed")]), "✓ 0 backends correct · ≈ 0 approximate · ✗ 0 wrong · 1 failure"),
        (runs.run([runs.record(seconds=None, memory=runs.memory(None, None, "no /proc"))]), "✓ 1 backend correct"),
        (runs.run([runs.record(word=None)]), "✓ 0 backends correct"),
        (runs.run([replace(runs.record(), time=replace(runs.time(), launches=()))]), "✓ 1 backend correct"),
        (runs.run([runs.record(backend="a"), runs.record(backend="b")]), "☆ 1.0 ☆ 1.0"),
        (
            runs.run([replace(r, time=runs.time(launches=2)) for r in runs.race([("a", 1.0), ("b", 2.0)])]),
            "10 1.0 1.0",
        ),
        (runs.run([runs.record(case="trap_x")], traps=("trap_x",)), "Only traps were checked"),
    ],
    ids=[
        "empty",
        "one backend",
        "failures only",
        "null figures",
        "unchecked",
        "no launches",
        "tie",
        "too few",
        "traps",
    ],
)
def test_a_run_of_little_has_a_page_that_says_so(run: Run, says: str) -> None:
    found = page.read(html.render(run))
    cells = [td.words for table in found.all("table", class_="map") for td in table.one("tbody").all("td")]
    assert says in found.one("p", class_="state").words + " ".join(cells)
    for section in found.all("section"):
        assert any(section.all(tag) for tag in ("table", "li", "article")), section.attributes


def test_a_picosecond_and_a_million_million_seconds_stand_side_by_side() -> None:
    records = [
        runs.record(size=size, backend=backend, seconds=seconds, spread=0.01)
        for size in (1, 10**9)
        for backend, seconds in (("fast", 1e-12), ("slow", 1e12))
    ]
    found = page.read(html.render(runs.run(records)))
    assert page.cell(found, "verdicts", "quadratic", "1", "fast").one(class_="figure").words == "★ 1.00 ps"
    assert page.cell(found, "verdicts", "quadratic", "1", "slow").one(class_="figure").words == "1.00·10¹² s"


def _large(cases: int, backends: int) -> Run:
    return runs.run(
        runs.record(f"case{c}", n, f"b{b}", operator, seconds=1e-6 * n * (b + 1), memory=runs.memory())
        for c in range(cases)
        for n in (1, 10, 100)
        for b in range(backends)
        for operator in ("value", "gradient")
    )


def test_the_tables_of_a_large_run_are_packed_and_what_matters_is_in_sight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "LARGE", 1)
    monkeypatch.setattr(html, "MOST_NOTES", 1)
    broken = [runs.record(backend=b, status="failed", reason=f"no {b}") for b in ("x", "y")]
    found = page.read(html.render(runs.run([*runs.race([("tape", 1e-6), ("other", 2e-6)]), *broken])))
    assert _map(found)["quadratic", "tape"].words == "★ 1.0"
    assert len(found.all("svg", class_="plot")) == 1
    assert not found.all("table", class_="verdicts")
    folds = json.loads(gzip.decompress(base64.b64decode(found.one("script", id="folds").text)))
    keys = {e.attributes["data-fold"] for e in found.all("details") if "data-fold" in e.attributes}
    assert keys == folds.keys() == {"case-0", "verdicts", "pairs-0", "phases", "operators", "reasons", "missing"}
    ids = {e.attributes["id"] for text in folds.values() for e in page.read(text).all() if "id" in e.attributes}
    ids |= {e.attributes["id"] for e in found.all() if "id" in e.attributes}
    assert {e.attributes["href"].removeprefix("#") for e in found.all() if "href" in e.attributes} <= ids
    assert "no y" in folds["reasons"]
    assert "no x" in found.one("ol", class_="notes").words


@pytest.mark.exhaustive
def test_a_page_of_forty_backends_and_thirty_cases_stays_light() -> None:
    text = html.render(_large(30, 40))
    assert len(text.encode()) < 2_000_000
    found = page.read(text)
    assert len(found.all()) < 20_000
    assert len(found.all("svg", class_="plot")) == 30
    assert "of the 16 fastest of 40" in found.one("section", id="pairs").words


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
