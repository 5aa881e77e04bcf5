"""The site of many runs: its links, its addresses, its ranking, and what it refuses."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from adbench.catalog.discovery import catalog
from adbench.findings.conform import conformance
from adbench.findings.conform.conformance import Conformance, ConformanceCell
from adbench.findings.every_input.input_sweep import InputSweep
from adbench.findings.same_bits.bits_matrix import BitsMatrix
from adbench.reports.site import addresses
from adbench.reports.site.archive import OTHER, archive
from adbench.results.store import dumps, read_run
from scripts import keep_run
from tests.reports import runs, site
from tests.reports.site import FAULT
from tests.reports.test_hostile import HOSTILE
from tests.support.command import adbench
from tests.test_imports import modules_after

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return site.write(tmp_path_factory.mktemp("sites") / "site")


def test_every_link_leads_to_a_file_and_an_anchor_of_the_site(written: Path) -> None:
    assert site.broken_links(written) == []
    (written / "cases" / "mine.html").rename(written / "gone")  # the check sees a page that is missing
    assert any("mine.html" in link for link in site.broken_links(written))
    (written / "gone").rename(written / "cases" / "mine.html")


def test_there_is_a_page_for_each_backend_case_machine_and_run(written: Path) -> None:
    found = {str(file.relative_to(written)) for file in written.rglob("*") if file.is_file()}
    assert {".nojekyll", "index.html", "search-index.js", "site.js", "style.css"} <= found
    assert {"backends/jax.html", "cases/matrix_product.html", "cases/mine.html", "conform/jax.html"} <= found
    machines = {addresses.machine_id(run) for run in (site.FIRST, site.OTHER)}
    assert {addresses.page("machines", machine) for machine in machines} <= found
    assert {addresses.page("runs", addresses.run_id(run)) for run in (site.FIRST, site.SECOND, site.OTHER)} <= found
    assert "quiet &lt;laptop&gt;" in (written / "index.html").read_text("utf-8")
    case = (written / "cases/matrix_product.html").read_text("utf-8")
    assert "xp.sum(A @ B)" in case
    assert case.count('class="plot"') >= 2
    assert "its user has the file" in (written / "cases/mine.html").read_text("utf-8")


def test_the_page_of_same_bits_has_a_square_for_each_kind_and_the_data(written: Path) -> None:
    text = (written / addresses.SAME_BITS).read_text("utf-8")
    (row,) = (line for line in text.splitlines() if "norm &lt;b&gt;" in line and "<td" in line)
    assert re.findall(r'<td class="t(\d)">([^<]*)<', row)[:8] == [
        *[("0", "="), *[("0", "–")] * 2, ("3", "37"), *[("0", "–")] * 2],
        *[("0", "="), ("0", "–")],
    ]
    assert "the value[1] is 1, then 1.5, 37.4 ulp" in text
    assert "it refuses" in text
    data = json.loads((written / addresses.SAME_BITS_DATA).read_text("utf-8"))
    assert BitsMatrix.from_plain(data, written) == site.BITS
    assert f'href="{addresses.SAME_BITS}"' in (written / "index.html").read_text("utf-8")


ODD = [*HOSTILE.values(), "../../up", "/etc/passwd", "con", "A", "a.b", "x\\y", ".hidden"]


def test_hostile_names_leave_no_folder_and_are_text_on_every_page(tmp_path: Path) -> None:
    every = "".join(ODD)
    run = runs.run(
        [
            *(
                runs.record(name, n, backend, seconds=None)
                for name in ODD
                for n in (1, 10)
                for backend in (name, "jax")
            ),
            *(runs.record("plain", 1, name, status="wrong", reason=name, stderr=name) for name in ODD),
            *runs.race([("jax", 1e-6), (ODD[0], 2e-6)], case=ODD[1]),
        ],
        cases={name: name for name in ODD},
        versions={name: name for name in ODD},
        machine={name: name for name in ODD} | {"processor": every},
        settings={name: name for name in ODD} | {"label": every},
        created=every,
        adbench_version=every,
    )
    hostile = replace(FAULT, got=every, expected=every, thread=every, program=every)
    cells = (ConformanceCell(ODD[0], ODD[0], ODD[0], ODD[0], 1, faults=[hostile]),)
    folder = site.write(tmp_path / "site", [run], Conformance({ODD[0]: every}, cells))
    assert [path.name for path in tmp_path.iterdir()] == ["site"]
    assert len(list((folder / "cases").iterdir())) == len(ODD) + 1
    assert site.broken_links(folder) == []
    for file in folder.rglob("*.html"):
        text = file.read_text("utf-8")
        assert text.count("<script") == (2 if 'class="large site"' in text else text.count("</script>"))
        assert "<script>alert" not in text
        assert not set(text) & set("\u202e\u2066\u200f\x1b\x07\x00\u2028\r")
    index = (folder / "search-index.js").read_text("utf-8")
    assert "<" not in index
    entries = json.loads(index.removeprefix("const INDEX = ").rstrip().removesuffix(";"))
    assert all(not url.startswith(("/", ".", "http", "javascript")) for _, _, _, url in entries)


def test_names_that_differ_in_case_or_in_odd_characters_have_different_addresses() -> None:
    names = ["a", "A", "a.b", "a/b", "a b", "ä", "a-b", "", "x" * 70, "x" * 71]
    assert len({addresses.slug(name).lower() for name in names}) == len(names)
    assert addresses.page("cases", "matrix_product") == "cases/matrix_product.html"


def test_speed_is_compared_inside_the_run_with_the_most_backends_and_of_these_the_newest() -> None:
    slow = replace(site.FIRST, created="2026-04-01T00:00:00+00:00", records=tuple(runs.race([("tape", 1.0)])))
    old = replace(
        site.FIRST,
        created="2025-01-01T00:00:00+00:00",
        records=tuple(replace(r, time=runs.time(1.0)) for r in site.RECORDS),
    )
    found = archive([("a", site.FIRST), ("b", old), ("c", slow)], catalog())
    machine = addresses.machine_id(site.FIRST)
    assert found.races[machine, "mine"].stored.run is site.FIRST
    lines = {line[0].backend: line for line in found.standings}
    assert [*lines] == ["jax", "torch", "tape"]
    assert [lines[name][0].text for name in lines] == ["1.0", "2.0", "3.0"]
    assert found.raced_families == [("matrices", 1), (OTHER, 1)]


def test_correctness_is_that_of_the_newest_run() -> None:
    wrong = runs.record("mine", 10, "jax", status="wrong")
    later = replace(site.FIRST, created="2026-05-01T00:00:00+00:00", records=(wrong,))
    for order in ([site.FIRST, later], [later, site.FIRST]):
        merged = archive([(str(k), run) for k, run in enumerate(order)], catalog()).merged
        assert merged.single(wrong.job).word == "wrong"


@pytest.mark.slow
def test_the_next_site_replaces_the_pages_and_leaves_other_files(tmp_path: Path) -> None:
    folder = site.write(tmp_path / "site")
    (folder / "CNAME").write_text("example.org")
    site.write(folder, [site.OTHER])
    assert (folder / "CNAME").exists()
    assert not (folder / addresses.page("runs", addresses.run_id(site.FIRST))).exists()
    assert site.broken_links(folder) == []


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """a.json and its copy, a compressed run, a result of conform, and damaged files."""
    (tmp_path / "a.json").write_text(dumps(site.FIRST))
    (tmp_path / "copy.json").write_text(dumps(site.FIRST))
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(dumps(site.OTHER).encode()))
    (tmp_path / "conform.json").write_text(conformance.as_text(conformance.as_plain(site.CONFORM)))
    (tmp_path / "every.json").write_text(conformance.as_text(site.SWEEP.as_plain()))
    (tmp_path / "cut.json.gz").write_bytes((tmp_path / "b.json.gz").read_bytes()[:-30])
    (tmp_path / "not.json.gz").write_text("{}")
    (tmp_path / "cut.json").write_text(dumps(site.FIRST)[:-20])
    (tmp_path / "odd.json").write_text('{"adbench conform": 1, "libraries": {}, "cells": [{"operation": 3}]}')
    (tmp_path / "bits.json").write_text(json.dumps(site.BITS.to_plain()))
    (tmp_path / "odd_bits.json").write_text('{"adbench same bits": 1, "cells": 3}')
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("precious")
    return tmp_path


def test_a_site_is_written_by_one_command(stored: Path) -> None:
    files = ("a.json", "b.json.gz", "conform.json", "every.json", "bits.json")
    done = adbench(stored, "publish", *files, "-o", "out")
    assert (done.code, done.out) == (0, "site: out/index.html\n"), done.err
    assert "2 runs on 2 machines" in (stored / "out/index.html").read_text("utf-8")
    assert "1 of 2" in (stored / "out/index.html").read_text("utf-8")
    assert site.broken_links(stored / "out") == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("a.json", "copy.json"), "a.json and copy.json are the same run"),
        (("cut.json",), "cut.json: invalid or damaged JSON"),
        (("cut.json.gz",), "cut.json.gz: damaged"),
        (("not.json.gz",), "not.json.gz: damaged, or not compressed"),
        (("odd.json",), "odd.json: not a result of adbench conform"),
        (("odd_bits.json",), "odd_bits.json: not a matrix of same bits"),
        (("a.json", "bits.json", "bits.json"), "a second matrix of same bits"),
        (("missing",), "missing: cannot be read"),
        (("conform.json",), "no run is among the files"),
        (("a.json", "conform.json", "conform.json"), "a second result of jax"),
        (("a.json", "every.json", "every.json"), "a second result of jax at every input"),
        (("a.json", "-o", "full"), "full: has other files"),
        (("a.json", "-o", "a.json"), "a.json: cannot be written"),
    ],
)
def test_what_cannot_be_published_is_one_line(stored: Path, words: tuple[str, ...], said: str) -> None:
    done = adbench(stored, "publish", *words)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done.err
    assert said in done.err
    assert not (stored / "site").exists() or not list((stored / "site").iterdir())


def test_a_compressed_run_is_the_run(stored: Path) -> None:
    assert dumps(read_run(stored / "b.json.gz")) == dumps(site.OTHER)


def test_a_result_of_conform_survives_its_file(stored: Path) -> None:
    data = json.loads((stored / "conform.json").read_text("utf-8"))
    found = conformance.from_plain(data, stored)
    assert isinstance(found, Conformance)
    assert conformance.as_plain(found) == conformance.as_plain(site.CONFORM)


def test_a_result_at_every_input_survives_its_file(stored: Path) -> None:
    found = InputSweep.from_plain(json.loads((stored / "every.json").read_text("utf-8")), stored)
    assert conformance.as_text(found.as_plain()) == conformance.as_text(site.SWEEP.as_plain())


@pytest.mark.slow
def test_publishing_imports_no_backend(stored: Path) -> None:
    program = f"from adbench.cli import main\nsys.argv = ['adbench', 'publish', {str(stored / 'a.json')!r}, '-o', "
    program += f"{str(stored / 'imports')!r}]\ntry: main()\nexcept SystemExit: pass"
    assert not modules_after(program) & {"jax", "jaxlib", "torch", "autograd", "adbench.tape"}


def test_the_runs_of_this_repository_are_small_and_tell_no_paths() -> None:
    files = sorted((ROOT / "docs" / "runs").glob("*.json.gz"))
    assert files
    assert sum(file.stat().st_size for file in files) < 5_000_000
    for file in files:
        assert not keep_run.PATH.search(gzip.decompress(file.read_bytes()).decode()), file


def test_a_kept_run_has_no_path() -> None:
    frail = runs.record(backend="frail", status="failed", reason="raised", stderr='File "/home/me/x.py"')
    run = replace(site.FIRST, records=(frail,), settings={"cache": "/home/me/.cache", "quick": True})
    kept = keep_run.without_paths(run)
    assert not keep_run.PATH.search(dumps(kept))
    assert kept.settings == {"quick": True}
    with pytest.raises(ValueError, match=r"still has a path: /home/me/x\.py"):
        keep_run.without_paths(replace(run, records=(replace(frail, reason="in /home/me/x.py"),)))


@pytest.mark.slow
def test_the_site_of_this_repository_has_no_broken_link(tmp_path: Path) -> None:
    files = sorted(map(str, (ROOT / "docs" / "runs").glob("*.json.gz")))
    done = adbench(tmp_path, "publish", *files, "-o", "site")
    assert done.code == 0, done.err
    assert site.broken_links(tmp_path / "site") == []
