"""docs/reference/fault-atlas.md shows the tables that come with adbench."""

from adbench.atlas.table import TABLES, Atlas, AtlasRow, ReleaseRow, read
from scripts import atlas_page


def test_the_page_is_up_to_date() -> None:
    assert atlas_page.page() == atlas_page.PAGE.read_text("utf-8"), "python -m scripts.atlas_page"


def test_every_table_has_a_section() -> None:
    text = atlas_page.PAGE.read_text("utf-8")
    for file in TABLES.glob("*.json"):
        assert f"## {read(file).library}\n" in text


def test_a_cell_has_the_function_both_results_a_thread_and_how_it_is_known() -> None:
    releases = tuple(ReleaseRow(name, "3.11.7") for name in ("1.0", "1.1", "1.2", "1.3"))
    row = AtlasRow("trap_masked_sqrt", ("gradient",), "NnNR", {"n": ("x = nan", "0")})
    other = AtlasRow("trap_x_sqrt_x", ("hvp", "hessian"), "RrRR")
    text = "\n".join(atlas_page._table(Atlas("nolib", "nolib", "", releases, (row, other))))
    assert "<tr><th>trap</th><th>1.0 to 1.2</th><th>1.3</th></tr>" in text
    cell = next(line for line in text.splitlines() if "<summary>NaN</summary>" in line)
    assert "expected 0<br>got x = nan<br>run with 1.0, 1.2; others inferred" in cell
    assert "where(x &gt; 0, sqrt x, 0) at -1" in cell
    assert "jax-ml/jax#" in cell
    assert '<td class="r" title="right">✓</td>' in text
    assert "x_sqrt_x" not in text  # it never fails


def test_operators_are_named_in_short() -> None:
    four = tuple(f"hvp_{a}_over_{b}" for a in ("forward", "reverse") for b in ("forward", "reverse"))
    named = {
        ("gradient", "hvp", "hessian", *four): "gradient, second derivatives",
        ("hvp", "hessian"): "H v, Hessian",
        ("hessian", four[1]): "Hessian, forward ∘ reverse",
        ("value", "third_order"): "value, third_order",
    }
    for operators, text in named.items():
        assert atlas_page._operators(AtlasRow("t", operators, "N")) == text
