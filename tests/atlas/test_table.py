"""The table, what is read from it, and the file of known faults that is written from it."""

import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from adbench.atlas import advice, dating
from adbench.atlas.table import TABLES, Atlas, AtlasRow, ReleaseRow, merged, read, rows_of, text_of
from adbench.execution import known_faults
from adbench.model.errors import BadFile, UsageError
from adbench.reports.text.terminal import atlas as shown

RELEASES = tuple(ReleaseRow(name, "3.11.7", "") for name in ("1.0", "1.1", "1.2", "2.0", "2.1"))
BROKEN = ReleaseRow("1.2", "", "not installed: needs numpy<2")
NAN = {"n": ("x = nan", "1")}
ROWS = (
    AtlasRow("trap_a", ("gradient", "hvp"), "NN-RR", NAN),
    AtlasRow("trap_b", ("gradient",), "RR-rN", NAN),
    AtlasRow("trap_b", ("hvp",), "RR-NN", NAN),
    AtlasRow("trap_c", ("gradient", "hvp"), "RR-rR"),
    AtlasRow("trap_d", ("gradient", "hvp"), "NN-nN", NAN),
    AtlasRow("trap_e", ("gradient", "hvp"), "UU-RW", {"w": ("x = 2", "1")}),
)
ATLAS = Atlas("jax", "jax", "2026-11-27", (*RELEASES[:2], BROKEN, *RELEASES[3:]), ROWS)


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "jax.json"
    path.write_text(text_of(ATLAS), "utf-8")
    assert read(path) == ATLAS


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"adbench atlas": 2}', text_of(ATLAS).replace('"RR-rN"', '"RR-r"'),
     text_of(ATLAS).replace('"RR-rN"', '"RR-rX"'), text_of(ATLAS).replace('"traps"', '"trap"')],
)  # fmt: skip
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "jax.json"
    path.write_text(text, "utf-8")
    with pytest.raises(BadFile, match="is not a table of adbench atlas"):
        read(path)


def test_rows_of_some_traps_replace_those_of_the_table_and_others_stay() -> None:
    row = AtlasRow("trap_b", ("gradient", "hvp"), "RR-rR")
    of_b = replace(ATLAS, made="2026-12-24", releases=tuple(ReleaseRow(one.name) for one in RELEASES), traps=(row,))
    both = merged(ATLAS, of_b)
    assert both == replace(ATLAS, made="2026-12-24", traps=(*(one for one in ROWS if one.name != "trap_b"), row))
    for other in (replace(of_b, releases=RELEASES[1:]), replace(of_b, backend="jax_eager")):
        with pytest.raises(UsageError, match="give another --table"):
            merged(ATLAS, other)


def test_operators_that_agree_share_a_row() -> None:
    right, wrong = ("r", "", ""), ("w", "x = 2", "1")
    found = {
        0: {"t": {"gradient": wrong, "hvp": right, "hessian": right}},
        3: {"t": {"gradient": right, "hvp": right, "hessian": right}},
        5: {"t": {"gradient": right, "hvp": right, "hessian": right}},
    }
    assert rows_of(found, 7, frozenset({4})) == (
        AtlasRow("t", ("gradient",), "WqqR-Rq", {"w": ("x = 2", "1")}),
        AtlasRow("t", ("hvp", "hessian"), "RrrR-Rq", {}),
    )


def test_releases_are_ranked_by_their_number_of_faults() -> None:
    assert advice.ranking(ATLAS) == [((1, 1), ["2.0"]), ((2, 0), ["1.0 to 1.1"]), ((3, 0), ["2.1"])]
    assert shown.which(ATLAS) == (
        "Which version of jax? Fewest faults first (wrong gradients + traps where only second derivatives are wrong): "
        "2.0 (1 + 1); 1.0 to 1.1 (2 + 0); 2.1 (3 + 0)."
    )


def test_a_trap_that_a_release_has_not_run_ranks_none() -> None:
    newer = replace(ATLAS, traps=(*ROWS, AtlasRow("trap_f", ("gradient",), "NN-N-", NAN)))
    assert advice.ranking(newer) == advice.ranking(ATLAS)


def test_an_upgrade_says_what_it_repairs_and_breaks() -> None:
    first, second = advice.upgrades(ATLAS)
    assert (first.before, first.after) == ("1.1", "2.0")
    assert [row.name for row in first.repaired] == ["trap_a"]
    assert [(row.name, row.operators) for row in first.broken] == [("trap_b", ("hvp",))]
    assert (second.before, second.after, second.repaired) == ("2.0", "2.1", ())
    assert [(row.name, row.operators) for row in second.broken] == [
        ("trap_b", ("gradient",)),
        ("trap_e", ("gradient", "hvp")),
    ]


def test_the_terminal_has_a_row_for_each_trap_that_ever_fails() -> None:
    text = shown.text(ATLAS, 80)
    assert all(len(line) <= 80 for line in text.splitlines())
    assert text.splitlines()[:8] == [
        "   ┌ 1.0 to 1.1",
        "   │ ┌ 1.2",
        "   │ │ ┌ 2.0",
        "   │ │ │ ┌ 2.1",
        "a  N - · ·",
        "b  · - n N",
        "e  ∅ - · W",
        "d  N - N N",
    ]
    assert "1.2: not installed: needs numpy<2" in text
    assert "1.1 → 2.0 breaks b (second order)" in text


@pytest.mark.parametrize("file", sorted(TABLES.glob("*.json")), ids=lambda path: path.stem)
def test_a_shipped_table_fits_a_terminal_and_has_results(file: Path) -> None:
    found = read(file)
    assert found.library == file.stem
    assert len(found.usable) > 1
    assert all(len(line) <= 80 for line in shown.text(found, 80).splitlines())
    assert found.rows == tuple(row for row in found.rows if set(row.outcomes.upper()) <= set("RNWECUQ-"))


def test_the_shipped_tables_are_small() -> None:
    assert sum(file.stat().st_size for file in TABLES.glob("*.json")) < 1_000_000


KNOWN = """\
# Known faults of jax, by trap and operator: docs/how-to/write-a-backend.md#known-faults
library = "jax"
backends = ["jax", "jax_eager"]
checked = ["0.9"]

[[fault]]
trap = "gaussian_process"
got = "wrong"

[[fault]]
trap = "trap_a"
got = "nan"
reason = "0/0"
thread = "jax-ml/jax#7"

[[fault]]
trap = "trap_b"
operators = ["hvp", "h*_*"]
got = "nan"

[[fault]]
trap = "trap_d"
backends = ["jax_native"]
got = "nan"
since = "0.1"

[[fault]]
trap = "trap_d"
got = "nan"
since = "0.2"
repaired = "0.3"
"""


@pytest.fixture
def updated(tmp_path: Path) -> Callable[..., str]:
    """The text of a file of known faults after a table."""

    def text_after(text: str, table: Atlas = ATLAS) -> str:
        (tmp_path / "jax.toml").write_text(text, "utf-8")
        return known_faults.text_of(dating.updated(known_faults.read_file(tmp_path / "jax.toml"), table))

    return text_after


def test_known_faults_get_the_releases_of_the_table(updated: Callable[..., str]) -> None:
    data = tomllib.loads(updated(KNOWN))
    assert data["checked"] == ["0.9", "1.0", "1.1", "2.1"]  # the others did not run every trap
    assert data["backends"] == ["jax", "jax_eager"]
    entries = {
        (entry["trap"], *entry.get("operators", ()), *entry.get("backends", ())): entry for entry in data["fault"]
    }
    assert len(entries) == len(data["fault"]) == 7
    assert entries["gaussian_process",] == {"trap": "gaussian_process", "got": "wrong"}
    assert entries["trap_a",] == {
        "trap": "trap_a", "got": "nan", "reason": "0/0", "thread": "jax-ml/jax#7", "repaired": "2.0"
    }  # fmt: skip
    assert entries["trap_b", "hvp", "h*_*"]["since"] == "2.0"
    assert entries["trap_b", "jax"] == {"trap": "trap_b", "backends": ["jax"], "got": "nan", "since": "2.1"}
    assert entries["trap_d", "jax_native"]["since"] == "0.1"
    assert entries["trap_d",] == {"trap": "trap_d", "got": "nan"}
    assert entries["trap_e", "jax"]["got"] == "2"


def test_a_fault_that_turned_into_another_has_two_entries(updated: Callable[..., str]) -> None:
    row = AtlasRow("trap_e", ("gradient",), "WWWNN", {"w": ("x = 2", "1"), "n": ("x = nan", "1")})
    table = Atlas("jax", "jax", "", RELEASES, (row,))
    one = 'library = "jax"\nbackends = ["jax"]\n[[fault]]\ntrap = "trap_e"\ngot = "2"\nreason = "why"\n'
    entries = tomllib.loads(updated(one, table))["fault"]
    assert entries == [
        {"trap": "trap_e", "got": "2", "reason": "why", "repaired": "2.0"},
        {"trap": "trap_e", "backends": ["jax"], "got": "nan", "since": "2.0"},
    ]
    both = updated(one.replace('"2"', '"2 or nan"'), table)
    assert tomllib.loads(both)["fault"] == [{"trap": "trap_e", "got": "2 or nan", "reason": "why"}]
    assert [dating.kinds_of(got) for got in ("nan", "0 or nan", "raises: x", "0", "five digits")] == [
        "n", "nw", "ec", "w", "w"
    ]  # fmt: skip


def test_writing_known_faults_again_changes_nothing(updated: Callable[..., str]) -> None:
    text = updated(KNOWN)
    assert updated(text) == text
