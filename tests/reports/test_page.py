"""The page: complete, sealed, the same for the same run, and it shows what the run holds."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from dataclasses import replace

import pytest

from adbench.catalog import discovery
from adbench.model.record import Round, Run, Time
from adbench.model.serialization import from_plain
from reports.html import page as html
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


def test_the_catalog_loads_the_page_as_a_report(text: str) -> None:
    assert discovery.report_module("html.page").render(MIXED) == text


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
        "verdicts",
        "time",
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


def test_a_cell_shows_the_word_and_the_time_with_its_spread(mixed: page.Element) -> None:
    found = page.cell(mixed, "verdicts", "quadratic", "10", "tape")
    assert found.one(class_="figure").words == "20.0 µs"
    assert found.one(class_="spread").words == "19.0–21.0"
    assert found.one(class_="word").words == "✓ right"


def test_only_the_fastest_right_result_is_called_the_fastest(mixed: page.Element) -> None:
    crowned = {
        backend
        for backend in ("tape", "fast", "differences", "unsure", "blind", "liar")
        for size in ("1", "10", "100")
        if page.cell(mixed, "verdicts", "quadratic", size, backend).all(class_="crown")
    }
    assert crowned == {"fast"}


def test_the_quotable_sentences_rank_only_what_is_right(mixed: page.Element) -> None:
    right, fastest, price = (p.words for p in mixed.one(class_="quotes").all("p"))
    failed = mixed.one("p", class_="failed").words
    assert right.startswith("tape and fast are right on all 3 cells")
    assert "differences is approximate and not ranked" in right
    assert fastest == (
        "Fastest right gradient at the largest common size: fast on the only case, "
        "where the next takes 2.00× (2.00–2.00) its time."
    )
    assert price == "A gradient costs tape 1.00 (1.00–1.00) calls of the primal, fast 1.00 (1.00–1.00)."
    assert "Wrong: liar on 3 cells" in failed
    assert "frail crashed on 1 cell" in failed


def test_a_wrong_result_shows_no_time_even_where_it_was_timed() -> None:
    liar = replace(runs.record(backend="liar", status="wrong"), time=runs.time(1e-12), memory=runs.memory())
    found = page.read(html.render(runs.run([liar, runs.record(), runs.record(backend="other", seconds=3e-6)])))
    cell = page.cell(found, "verdicts", "quadratic", "10", "liar")
    assert cell.words.startswith("✗ wrong")
    assert not cell.all(class_="figure")
    assert page.cell(found, "resident peak", "quadratic", "10", "liar").words.startswith("—")
    assert "1.00 ps" not in found.one("main").words.replace("\u00a0", " ")


def test_a_gradient_beside_a_wrong_value_is_wrong() -> None:
    records = [
        runs.record(backend="liar", operator="value", status="wrong"),
        runs.record(backend="liar", seconds=1e-9),
        *runs.race([("tape", 2e-6), ("other", 1e-6)]),
    ]
    found = page.read(html.render(runs.run(records)))
    assert page.cell(found, "verdicts", "quadratic", "10", "liar").one(class_="word").words == "✗ wrong"
    assert "other on the only case" in found.one(class_="quotes").words
    assert not found.one("figure").all("g", class_="s0")


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
    for kind in ("resident peak", "python-visible peak"):
        found = page.cell(mixed, kind, "quadratic", "10", "fast")
        assert found.words.startswith("—")
        assert "0" not in found.words
        reason = mixed.one("li", id=found.one("a").attributes["href"].removeprefix("#"))
        assert "this system has no clear_refs" in reason.words


def test_memory_is_shown_by_method_with_its_unit(mixed: page.Element) -> None:
    assert page.cell(mixed, "resident peak", "quadratic", "10", "tape").words == "8.19 kB"
    assert page.cell(mixed, "python-visible peak", "quadratic", "10", "tape").words == "1.02 kB"


def test_a_figure_that_is_not_ranked_carries_its_sign_in_every_table(mixed: page.Element) -> None:
    assert "≈" in page.cell(mixed, "resident peak", "quadratic", "10", "differences").words
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
    assert rows["cheap"][6].words == "first result first"
    # 2 s more, and 2 µs less each time: from about the millionth call on.
    assert rows["dear"][6].words == "from call 999\u202f951 against cheap".replace("\u202f", " ")


def test_machine_versions_settings_and_seed_are_shown(mixed: page.Element) -> None:
    facts = {row.one("th").words: row.one("td").words for t in mixed.all(class_="facts") for row in t.all("tr")}
    assert facts["processor"] == "a processor"
    assert facts["memory bytes"] == "8.00 GB"
    assert facts["max mhz"] == "—"
    assert facts["epoch ns"] == "4.00 ms"
    assert facts["seed"] == "7"
    assert facts["tape"] == "1.0"


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


def test_the_floor_stands_beside_the_claims_and_a_noisy_session_says_so() -> None:
    def session(wobble: float) -> str:
        control = runs.time(2e-6, wobble=wobble)
        records = runs.race([("tape", 2e-6), ("fast", 1e-6)])
        records[0] = replace(records[0], control=control)
        return page.read(html.render(runs.run(records, reference_backend="tape"))).one("p", class_="floor").words

    quiet, noisy = session(0.004), session(0.2)
    assert quiet.startswith("Noise floor 0.40 %, margin 2.0 %.")
    assert "noisy" not in quiet
    assert noisy.startswith("This session is noisy. It reports, and nothing should be gated by it: Noise floor 2")
    assert "No noise floor" in page.read(html.render(MIXED)).one("p", class_="floor").words


def test_two_that_are_not_told_apart_share_the_lead() -> None:
    shaky = runs.record(backend="shaky", seconds=0.99e-6, wobble=0.1)
    found = page.read(html.render(runs.run([*runs.race([("tape", 1e-6), ("slow", 4e-6)]), shaky])))
    assert not found.all(class_="crown")
    ties = [
        b for b in ("tape", "slow", "shaky") if page.cell(found, "verdicts", "quadratic", "10", b).all(class_="tie")
    ]
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


def test_a_price_that_grows_with_n_is_said_so() -> None:
    records = [
        runs.record(size=n, backend=b, operator=op, seconds=1e-6 * n ** (2 if (b, op) == ("bad", "gradient") else 1))
        for n in (10, 100, 1000, 10000)
        for b in ("bad", "good")
        for op in ("value", "gradient")
    ]
    found = page.read(html.render(runs.run(records)))
    assert "the price grows with n for bad on 1 case." in found.one(class_="quotes").words
    trends = next(r for r in found.one("div", **{"aria-label": "cost"}).all("tr") if "trend" in r.words).all("td")
    assert [("grows with n" in td.words) for td in trends[1:]] == [True, False]
    legend = {li.words.split()[0]: li.words for li in found.one("section", id="time").one("ul").all("li")}
    assert "gradient n^2.00 (2.00–2.00)" in legend["bad"]
    assert "value n^1.00 (1.00–1.00)" in legend["bad"]


def test_bytes_per_operation_stand_below_the_bytes() -> None:
    found = page.read(html.render(runs.run([runs.record(memory=runs.memory())], flops={"quadratic": {"10": 1024.0}})))
    assert page.cell(found, "resident peak", "quadratic", "10", "tape").words == "8.19 kB 8.00 B per operation"


def test_traps_have_a_table_of_their_own() -> None:
    records = [runs.record(), runs.record(case="trap_sinc", size=1, status="wrong", reason="nan")]
    found = page.read(html.render(runs.run(records, traps=("trap_sinc",))))
    assert "tape is right on the only cell" in found.one(class_="quotes").words
    row = found.one("section", id="traps").one("tbody").one("tr")
    assert row.one("th").words == "trap_sinc"
    assert row.one("td").words.startswith("✗ wrong".replace(" ", ""))


@pytest.mark.parametrize(
    ("run", "says"),
    [
        (runs.run(), "Nothing was measured"),
        (runs.run([runs.record()]), "tape is right on the only cell"),
        (runs.run([runs.record(status="failed")]), "No backend is right on any of 1 cell"),
        (runs.run([runs.record(seconds=None, memory=runs.memory(None, None, "no /proc"))]), "nothing is ranked"),
        (runs.run([runs.record(word=None)]), "nothing is ranked"),
        (runs.run([replace(runs.record(), time=replace(runs.time(), launches=()))]), "nothing is ranked"),
        (runs.run([runs.record(backend="a"), runs.record(backend="b")]), "are not told apart on the only case"),
        (
            runs.run([replace(r, time=runs.time(launches=2)) for r in runs.race([("a", 1.0), ("b", 2.0)])]),
            "are not told apart on the only case",
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
    assert says in found.one(class_="quotes").words
    assert len(found.all("section")) == 9 + bool(run.traps)


def test_a_picosecond_and_a_million_million_seconds_stand_side_by_side() -> None:
    records = [
        runs.record(size=size, backend=backend, seconds=seconds, spread=0.01)
        for size in (1, 10**9)
        for backend, seconds in (("fast", 1e-12), ("slow", 1e12))
    ]
    found = page.read(html.render(runs.run(records)))
    assert page.cell(found, "verdicts", "quadratic", "1", "fast").one(class_="figure").words == "1.00 ps fastest"
    assert page.cell(found, "verdicts", "quadratic", "1", "slow").one(class_="figure").words == "1.00·10¹² s"


@pytest.mark.slow
def test_a_page_of_two_thousand_records_stays_small_and_draws_no_more_than_can_be_looked_at() -> None:
    records = [
        runs.record(f"case{c}", n, f"backend{b}", operator, seconds=1e-6 * n * (b + 1))
        for c in range(10)
        for n in (1, 10, 100, 1000, 10000)
        for b in range(20)
        for operator in ("value", "gradient")
    ]
    found = html.render(runs.run(records))
    assert len(found) < 4_000_000
    assert len(page.figures(found)) == 20
    matrix = page.read(found).one("section", id="pairs").all("table", class_="matrix")[0]
    assert len(matrix.one("tbody").all("tr")) == 16
    assert "of the 16 fastest of 20" in found


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
