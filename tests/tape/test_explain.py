"""The tables and the drawing show exactly the engine's operations."""

import math
from dataclasses import FrozenInstanceError, dataclass

import numpy as np
import pytest

from adbench import tape
from adbench.tape import explain

Y, MU, SIGMA = 1.3, 0.5, 1.2


def normal_log(y, mu, sigma):
    return -0.5 * ((y - mu) / sigma) ** 2 - tape.log(sigma) - 0.5 * math.log(2 * math.pi)


PAPER = explain(normal_log, Y, MU, SIGMA)


def test_the_forward_table_is_the_papers_figure_2_in_numbers():
    v4 = Y - MU
    v5 = v4 / SIGMA
    expected = [Y, MU, SIGMA, v4, v5, v5**2, -0.5 * v5**2, math.log(SIGMA), -0.5 * v5**2 - math.log(SIGMA), PAPER.value]
    assert [node.name for node in PAPER.nodes] == [f"v{i}" for i in range(1, 11)]
    np.testing.assert_allclose([node.value for node in PAPER.nodes], expected, rtol=1e-15)
    operations = [
        "y",
        "mu",
        "sigma",
        "v1 - v2",
        "v4 / v3",
        "v5 ** 2",
        "-0.5 * v6",
        "log(v3)",
        "v7 - v8",
        "v9 - 0.918939",
    ]
    assert [node.operation for node in PAPER.nodes] == operations
    partials = {(p.result, p.operand): (p.formula, p.value) for node in PAPER.nodes for p in node.partials}
    assert partials == {
        ("v4", "v1"): ("1", 1.0),
        ("v4", "v2"): ("-1", -1.0),
        ("v5", "v4"): ("1 / v3", 1 / SIGMA),
        ("v5", "v3"): ("-v5 / v3", -v5 / SIGMA),  # the paper's -v4 v3^-2, using an existing value
        ("v6", "v5"): ("2 * v5", 2 * v5),
        ("v7", "v6"): ("-0.5", -0.5),
        ("v8", "v3"): ("1 / v3", 1 / SIGMA),
        ("v9", "v7"): ("1", 1.0),
        ("v9", "v8"): ("-1", -1.0),
        ("v10", "v9"): ("1", 1.0),
    }


def test_the_reverse_table_is_the_papers_figure_3_line_by_line():
    v4 = Y - MU
    v5 = v4 / SIGMA
    figure = [
        ("a9", "a10", 1.0),
        ("a7", "a9", 1.0),
        ("a8", "a9", -1.0),
        ("a3", "a8", -1 / SIGMA),
        ("a6", "a7", -0.5),
        ("a5", "a6", -v5),
        ("a4", "a5", -v5 / SIGMA),
        ("a3", "a5", -1 / SIGMA + v5 * v4 / SIGMA**2),
        ("a1", "a4", -v5 / SIGMA),
        ("a2", "a4", v5 / SIGMA),
    ]
    assert [(u.target, u.source) for u in PAPER.updates] == [row[:2] for row in figure]
    np.testing.assert_allclose([u.adjoint for u in PAPER.updates], [row[2] for row in figure], rtol=1e-15)
    assert str(PAPER).splitlines()[-12:-8] == [
        "a1:9  =   0                a1:9 = 0",
        "a10   =   1                a10 = 1",
        "a9    +=  a10 × (1)        a9 = 1",
        "a7    +=  a9 × (1)         a7 = 1",
    ]


def test_the_drawing_is_the_papers_figure_1():
    assert (
        PAPER.graph()
        == """\
v10 -
├── v9 -
│   ├── v7 *
│   │   ├── -0.5
│   │   └── v6 **
│   │       ├── v5 /
│   │       │   ├── v4 -
│   │       │   │   ├── v1 y
│   │       │   │   └── v2 mu
│   │       │   └── v3 sigma
│   │       └── 2
│   └── v8 log
│       └── v3 sigma
└── 0.918939"""
    )


@dataclass
class Parameters:
    rate: float
    weights: np.ndarray


def assigned(x, v):
    x[1:] = v * x[0]
    return tape.sum(x * np.array([1.0, 2.0, 3.0]))


def made_inside(x):
    inner = tape.Var([1.0, 2.0])
    return tape.sum(inner * x)


def with_callback(a):
    def chain(vi):
        a.adj += -vi.val.T @ vi.adj @ vi.val.T

    return tape.sum(tape.make_callback_var(np.linalg.inv(a.val), chain) ** 2)


def with_bare_callback(a):
    y = tape.Var(3.0 * a.val)

    def chain():
        a.adj += 3.0 * y.adj

    tape.reverse_pass_callback(chain)
    return y * y


A = np.array([[2.0, 1.0], [0.5, 3.0]])
PROGRAMS = [
    (normal_log, (Y, MU, SIGMA)),
    (lambda x: x * x + x, (3.0,)),
    (lambda x: x, (2.0,)),
    (lambda x, y: 2.0 / x - (x + 1) / (4 - y) - (-x) ** 3.0 + x**y, (1.5, 2.5)),
    (lambda a, x: tape.sum(tape.tanh(a @ x) ** 2 * 3), (A, np.array([0.3, -0.2]))),
    (lambda a: tape.linalg.slogdet(a).logabsdet + tape.einsum("ij,ji->", a, a), (A,)),
    (lambda a: tape.sum(tape.linalg.inv(a) / a[0]) - 2 * a[1, 0], (A,)),
    (lambda p: p["a"] * p["a"] + tape.exp(p["b"])[1], ({"a": 2, "b": np.arange(3)},)),
    (lambda p, q: tape.sum(p.weights * p.rate) * q[0], (Parameters(0.5, np.arange(3.0)), [2.0, 1.0])),
    (lambda y, mu, sigma: tape.normal_lpdf(y, mu, sigma), (np.array([1.0, 2.0]), 0.5, np.array([1.0, 3.0]))),
    (lambda x: x * tape.sqrt(x), (0.0,)),  # 0 · inf: the careful sweep
    (lambda x: tape.sum(np.array([0.0, 1.0]) * tape.sqrt(x)), (np.array([0.0, 4.0]),)),
    (lambda x: tape.gradient(lambda z: z**3 * x, x)[1], (7.0,)),
    (assigned, (np.array([1.0, 5.0, 6.0]), 4.0)),
    (made_inside, (2.0,)),
    (with_callback, (A,)),
    (with_bare_callback, (1.5,)),
]


@pytest.mark.parametrize("index", range(len(PROGRAMS)))
def test_value_and_final_adjoints_are_those_of_gradient(index):
    f, args = PROGRAMS[index]
    explained = explain(f, *args)
    fx, g = tape.gradient(lambda packed: f(*packed), args)
    assert explained.value == fx
    ours = []

    def compare(a, b):
        np.testing.assert_allclose(a, b, rtol=1e-15)
        ours.append(a)
        return a

    tape.tree_map(compare, explained.gradient, g)
    last = {u.target: u.adjoint for u in explained.updates}
    for i, leaf in enumerate(ours, 1):
        assert explained.root == f"v{i}" or np.array_equal(last.get(f"a{i}", np.zeros(np.shape(leaf))), leaf)
    root = [node for node in explained.nodes if node.name == explained.root]
    assert [node.value for node in root] == [fx]
    assert "Forward" in str(explained)


@pytest.mark.parametrize("index", range(len(PROGRAMS)))
def test_updates_are_adjoint_times_partial_where_the_partial_is_a_number(index):
    adjoints = {}
    f, args = PROGRAMS[index]
    explained = explain(f, *args)
    adjoints = {explained.root.replace("v", "a"): 1.0}
    for u in explained.updates:
        before = adjoints.get(u.target, 0.0)
        if u.partial is not None and u.partial.shape == () and adjoints.get(u.source) is not None:
            factor = u.partial.value
            step = 0.0 if adjoints[u.source] == 0.0 or (factor == 0.0) else adjoints[u.source] * factor
            if np.isfinite(step):
                assert u.adjoint == before + step
        adjoints[u.target] = u.adjoint


def test_values_of_arrays_that_no_record_keeps_are_shown():
    explained = explain(lambda x: tape.sum(tape.sin(x + 1.0) - x), np.array([0.5, 1.5]))
    x = np.array([0.5, 1.5])
    values = [x, x + 1.0, np.sin(x + 1.0), np.sin(x + 1.0) - x, np.sum(np.sin(x + 1.0) - x)]
    for node, value in zip(explained.nodes, values, strict=True):
        np.testing.assert_array_equal(node.value, value)


def test_constants_are_shown_as_such_and_have_no_edge():
    explained = explain(lambda x: 2.0 * x + np.arange(6.0).reshape(2, 3), 1.5)
    assert [node.operation for node in explained.nodes] == ["x", "2 * v1", "v2 + array (2, 3)"]
    assert explained.nodes[2].operands == ("v2", "array (2, 3)")
    assert [(p.operand, p.shape, p.value) for p in explained.nodes[2].partials] == [("v2", (2, 3), None)]
    np.testing.assert_array_equal(explained.value, 3.0 + np.arange(6.0).reshape(2, 3))
    assert explained.gradient == (12.0,)


def test_a_function_that_is_constant_has_no_reverse_pass():
    explained = explain(lambda x: 4.0, 1.5)
    assert (explained.value, explained.root, explained.updates, explained.gradient) == (4.0, "", (), (0.0,))
    assert explained.graph() == "4, a constant"
    assert "others" not in explained.reverse()


def test_a_shared_node_is_drawn_once():
    def f(x):
        s = tape.sin(x)
        return s * s + s

    assert (
        explain(f, 1.0).graph()
        == """\
v4 +
├── v3 *
│   ├── v2 sin
│   │   └── v1 x
│   └── v2 sin (drawn above)
└── v2 sin (drawn above)"""
    )


@pytest.mark.parametrize(
    ("f", "formulas"),
    [
        (lambda x, y: tape.hypot(x, y), ["v1 / v3", "v2 / v3"]),
        (lambda x, y: x * y, ["v2", "v1"]),
        (lambda x, y: x**3.0, ["3 * v1 ** 2"]),
        (lambda x, y: x**y, ["v2 * v1 ** (v2 - 1)", "v3 * log(v1)"]),
        (lambda x, y: tape.arcsin(x), ["1 / sqrt((1 - v1) * (1 + v1))"]),
        (lambda x, y: tape.cos(x), ["-sin(v1)"]),
        (lambda x, y: 1.0 / x, ["-v3 / v1"]),
        (lambda x, y: tape.maximum(x, y), ["0"]),
    ],
)
def test_formulas_are_the_rules_own_gradient_functions(f, formulas):
    node = explain(f, 0.25, 0.5).nodes[2]
    assert [p.formula for p in node.partials][: len(formulas)] == formulas
    names = {"v1": 0.25, "v2": 0.5, "v3": node.value, "log": math.log, "sqrt": math.sqrt, "sin": math.sin}
    for p in node.partials:
        assert p.value == pytest.approx(eval(p.formula, names), rel=1e-15)  # noqa: S307  # our own formulas


def test_a_rule_with_gradients_for_plain_numbers_only_has_numbers_and_no_formula():
    odd = tape.function_gradients(lambda x: math.sin(x), (lambda val, adj, x: adj * math.cos(x),), name="odd")
    (partial,) = explain(odd, 0.5).nodes[1].partials
    assert partial.formula == ""
    assert str(partial) == f"∂v2/∂v1 = {math.cos(0.5):.6g}"


def test_names_default_to_the_names_of_the_parameters():
    nest = {"a": 1.0, "b": [2.0, 3.0]}
    f = lambda theta: theta["a"] * theta["b"][1]  # noqa: E731
    assert [node.operation for node in explain(f, nest).nodes[:3]] == ["theta['a']", "theta['b'][0]", "theta['b'][1]"]
    assert [node.operation for node in explain(normal_log, 1, 2, 3, names=["a", "b", "c"]).nodes[:3]] == ["a", "b", "c"]
    assert explain(tape.sin, 1.0).nodes[0].operation == "independent variable"
    with pytest.raises(ValueError, match="expected 3 names, one for each argument, got 2"):
        explain(normal_log, 1, 2, 3, names=["a", "b"])


def test_operations_are_written_as_in_python():
    explained = explain(lambda x: tape.sum((-x)[0, 1:] * x[:, ::2][..., 1], axis=0), np.arange(6.0).reshape(2, 3))
    operations = [node.operation for node in explained.nodes[1:]]
    assert operations == ["-v1", "v2[0, 1:]", "v1[:, ::2]", "v4[..., 1]", "v3 * v5", "sum(v6)"]


def test_a_callback_is_shown_by_its_effect():
    explained = explain(with_callback, A)
    assert explained.nodes[1].operation == "callback"
    np.testing.assert_array_equal(explained.nodes[1].value, np.linalg.inv(A))
    assert "(by the callback of v2)" in explained.reverse()


def test_an_explanation_is_frozen_and_outlives_its_tape():
    with pytest.raises(FrozenInstanceError):
        PAPER.root = "v1"
    kept = explain(assigned, np.array([1.0, 5.0, 6.0]), 4.0)
    before = str(kept)
    explain(assigned, np.array([3.0, 5.0, 6.0]), 1.0)
    assert str(kept) == before


def test_explain_works_inside_a_derivative():
    assert tape.gradient(lambda x: x * explain(lambda z: z * x, 3.0).value, 2.0)[1] == 6.0


def test_a_result_that_is_neither_number_nor_array_raises_an_error():
    with pytest.raises(tape.NotScalarError, match="explain: f should return a number or an array, got tuple"):
        explain(lambda x: (x, x), 1.0)


def test_a_long_recording_is_drawn_without_recursion():
    explained = explain(lambda x: tape.loop(lambda _, s: tape.sin(s) + 1.0, x, 1500), 0.5)
    assert len(explained.graph().splitlines()) == 4501
