"""`adbench explain`: the tape of a case in a terminal, as JSON and as a page, as the paper shows it."""

import json
import os
import subprocess
import sys
from itertools import pairwise

import pytest

from adbench.catalog.discovery import catalog
from adbench.model.errors import UsageError
from adbench.reports.figures import expression_graph
from adbench.reports.html.explain import Explained, ends, explained, page, plain, text
from tests.reports.page import read
from tests.support.command import adbench

HOSTILE = '''"""A case called <script>alert(1)</script> & "quotes"."""
from adbench import Case


def f(xp, x):
    return xp.sum(xp.sin(x["</svg><b>"]) * x["\\n\\u202e"])


def inputs(n, rng):
    return {"x": {"</svg><b>": rng.normal(size=n), "\\n\\u202e": 2.0}}


CASE = Case(f=f, inputs=inputs, wrt=("x",), sizes=(2,))
'''


@pytest.fixture(scope="module")
def everything():
    return catalog()


def told(everything, name: str, size: int | None = None, **options) -> Explained:
    return explained(everything, name, size, **options)


def test_the_gradient_at_the_end_of_the_sweep_is_the_case_s_own(everything):
    for name in ("hypot", "normal_log_density_loop", "normal_log_density_in_y_mu"):
        case = everything.cases[name]
        found = told(everything, name)
        _, args, active = case.bind(case.sizes[0], 0)
        by_hand = case.gradient(*args) if case.gradient else None
        assert len(found.tape.gradient) == len(active)
        if by_hand is not None:
            for ours, theirs in zip(found.tape.gradient, by_hand, strict=True):
                assert ours == pytest.approx(theirs, rel=1e-12)


def test_constants_are_constants_and_active_inputs_have_their_names(everything):
    found = told(everything, "normal_log_density_in_mu")
    inputs = [node.operation for node in found.tape.nodes if not node.operands]
    assert inputs == ["mu"]
    assert plain(found)["nodes"][0] == {
        "name": "v1", "operation": "mu", "operands": [], "value": found.tape.nodes[0].value, "partials": [],
    }  # fmt: skip


def test_a_terminal_shows_the_graph_and_both_tables(everything):
    shown = text(told(everything, "hypot"), colour=False, width=80)
    assert "└── v6 sqrt" in shown
    assert "∂v6/∂v5 = 0.5 / v6" in shown
    assert "a5    +=  a6 × (0.5 / v6)" in shown
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= 80, "a second partial has its own line"
    assert "\x1b[1m" in text(told(everything, "hypot"), colour=True, width=80)


def test_of_long_tables_the_first_and_last_rows_are_shown_and_the_rest_counted(everything):
    found = told(everything, "normal_log_density_loop", 200)
    shown = text(found, colour=False, width=100)
    assert len(shown.splitlines()) < 160
    rows = [node for node in found.tape.nodes if f"\n{node.name} " in shown]
    assert rows[0].name == "v1"
    assert rows[-1] is found.tape.nodes[-1]
    assert f"… {len(found.tape.nodes) - 40} more" in shown
    assert len(plain(found)["nodes"]) == len(found.tape.nodes)  # the JSON has all
    drawn = read(page(found))
    assert f"… {len(found.tape.nodes) - 40} more".replace(" ", "") in drawn.text.replace("\u202f", "").replace(" ", "")


@pytest.mark.parametrize(("count", "left_out"), [(0, 0), (40, 0), (41, 0), (42, 2), (1000, 960)])
def test_nothing_is_left_out_that_would_fit(count, left_out):
    first, between, last = ends(range(count))
    assert between == left_out
    assert [*first, *last] == [k for k in range(count) if not left_out or k < 20 or k >= count - 20]


def test_the_json_is_json_whatever_the_numbers_are(everything):
    for name in ("hypot", "trap_square_of_sqrt", "trap_masked_infinity"):
        json.loads(json.dumps(plain(told(everything, name)), allow_nan=False))


def test_guards_and_native_code_are_shown_when_asked_for(everything):
    found = told(everything, "projectile", compiled=True)
    assert found.listing is not None
    assert found.listing.guards
    shown = text(found, colour=False, width=100)
    assert "Guards" in shown
    assert found.listing.guards[0] in shown
    assert plain(found)["compiled"]["assembly"]
    document = read(page(found))
    assert document.all("section", id="compiled")
    assert not read(page(told(everything, "hypot"))).all("section", id="compiled")


def test_what_cannot_be_compiled_or_explained_says_so(everything, tmp_path):
    found = told(everything, "van_der_pol", compiled=True)
    assert found.listing is not None
    assert found.listing.eager or found.listing.assembly
    with pytest.raises(UsageError, match="hypot has no size -1; use"):
        told(everything, "hypot", -1)
    (tmp_path / "raises.py").write_text(HOSTILE.replace("return xp.sum", "return xp.nothing_such"), "utf-8")
    with pytest.raises(UsageError, match=r"raises: the tape cannot run it: .*nothing_such"):
        explained(catalog([tmp_path / "raises.py"]), "raises", None)


def test_every_trap_has_a_tape_or_a_reason(everything):
    for name in [name for name, case in everything.cases.items() if case.is_trap][::7]:
        try:
            nodes = told(everything, name).tape.nodes
        except UsageError as error:
            assert "the tape cannot run it" in str(error)  # noqa: PT017  # either is fine
        else:
            assert nodes


def test_the_sum_of_an_array_is_differentiated_and_that_is_said(everything):
    found = told(everything, "hand_tracking_simple")
    assert found.summed
    assert "the sum of its elements is differentiated" in text(found, colour=False, width=100)
    assert "the sum of its elements is differentiated" in page(found)


def test_the_page_allows_nothing_from_elsewhere_and_is_the_same_twice(everything):
    found = told(everything, "hypot")
    document = read(page(found))
    policy = document.one("meta", **{"http-equiv": "Content-Security-Policy"}).attributes["content"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert not [e for e in document.all() if any(a in e.attributes for a in ("src", "style", "onclick"))]
    assert page(found) == page(told(everything, "hypot"))


@pytest.mark.slow
def test_another_process_makes_the_same_page(tmp_path):
    made = []
    for seed in ("1", "2"):
        path = tmp_path / f"{seed}.html"
        command = [sys.executable, "-m", "adbench", "explain", "hypot", "--html", str(path)]
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": seed})
        made.append(path.read_bytes())
    assert len(set(made)) == 1


def test_hostile_names_are_text(tmp_path):
    (tmp_path / "hostile.py").write_text(HOSTILE, "utf-8")
    found = explained(catalog([tmp_path / "hostile.py"]), "hostile", None)
    document = read(page(found))
    assert len(document.all("script")) == 1
    assert not document.all("b")
    assert "<script>alert(1)</script>" in document.text
    assert "\u202e" not in page(found)
    assert "\u202e" not in text(found, colour=False, width=100)


def test_each_edge_of_the_graph_is_drawn_once_and_no_node_covers_another(everything):
    found = told(everything, "projectile")
    graph = expression_graph.graph(found.tape, {})
    drawn = {circle.name for circle in graph.circles if circle.name}
    nodes = [node for node in found.tape.nodes if node.name in drawn]  # one is computed and used by nothing
    assert len(graph.lines) == sum(len(node.operands) for node in nodes)
    assert graph.left_out == 0
    for row in {circle.y for circle in graph.circles}:
        line = sorted((c.x - c.radius, c.x + c.radius) for c in graph.circles if c.y == row)
        assert all(right <= left for (_, right), (left, _) in pairwise(line))
    assert all(y1 > y2 for _, y1, _, y2 in graph.lines)


def test_a_variable_that_an_operation_uses_twice_has_two_lines_to_it(everything):
    graph = expression_graph.graph(told(everything, "hypot").tape, {})
    places = {circle.name: circle for circle in graph.circles}
    to_the_square = [line for line in graph.lines if line[3] == places["v3"].y + 16 and line[1] == places["v1"].y - 16]
    of_x = [line for line in to_the_square if abs(line[0] - places["v1"].x) < places["v1"].radius]
    assert len(of_x) == len(set(of_x)) == 2  # v3 = x * x
    assert len(graph.lines) == len(set(graph.lines)) == 8


def test_a_large_graph_is_drawn_from_the_value_down(everything):
    found = told(everything, "normal_log_density_loop", 100)
    graph = expression_graph.graph(found.tape, {})
    drawn = {circle.name for circle in graph.circles if circle.name}
    assert found.tape.root in drawn
    assert len(drawn) == expression_graph.MOST_NODES
    assert graph.left_out == len(found.tape.nodes) - len(drawn)
    assert "more" in {circle.kind for circle in graph.circles}


def test_crossings_that_can_be_avoided_are():
    crossed = {"f": ["a", "b"], "a": ["y"], "b": ["x"], "x": [], "y": []}
    places = expression_graph.placed(crossed, dict.fromkeys(crossed, 2.0))
    assert (places["a"] < places["b"]) == (places["y"] < places["x"])


def test_the_command_writes_a_page_and_refuses_in_one_line(tmp_path):
    done = adbench(tmp_path, "explain", "hypot", "-n", "1", "--html", "hypot.html")
    assert (done.code, done.out) == (0, "page: hypot.html\n"), done.err
    assert "<svg" in (tmp_path / "hypot.html").read_text("utf-8")
    refused = adbench(tmp_path, "explain", "normal_log*")
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert "matches" in refused.err
