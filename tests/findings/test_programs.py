"""Random programs are data: the same for the same seed, and the same as Python source for any library."""

import json
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adbench.findings.finding import Finding
from adbench.findings.programs.generation import drawn, programs
from adbench.findings.programs.random_program import Input, Program, Step
from adbench.model.namespace import PLAIN

SIN = Step("sin", "xp.sin({0})", (0,))
PRODUCT = Step("multiply", "{0} * {1}", (2, 1))
TWO = Program((Input(2.0), Input((1.0, 3.0))), (SIN, PRODUCT))
LOOP = Step("loop", "xp.loop(lambda i, y: {body}(y), {0}, 3)", (1,), (Step("scaled", "{0} * {1}", (3, 2)),))


@st.composite
def random_programs(draw: st.DrawFn) -> Program:
    """The programs of `adbench fuzz`, drawn by Hypothesis."""
    return drawn(lambda n: draw(st.integers(0, n - 1)), steps=6)


def test_a_seed_always_gives_the_same_programs() -> None:
    first, second = programs(3), programs(3)
    assert [first() for _ in range(30)] == [second() for _ in range(30)]
    other = programs(4)
    assert [other().source() for _ in range(3)] != [second().source() for _ in range(3)]


def test_programs_have_up_to_thirty_operations_and_all_kinds_of_them() -> None:
    following = programs(0)
    found = [following() for _ in range(500)]
    sizes = [program.size for program in found]
    assert min(sizes) == 1
    assert 20 < max(sizes) <= 40
    names = {name for program in found for name in program.operations}
    assert {"loop", "derivative", "gather", "where_less", "inv", "sum_keepdims", "matmul"} <= names


@settings(max_examples=40, deadline=None)
@given(random_programs())
def test_every_program_has_a_finite_number_as_its_value(program: Program) -> None:
    with np.errstate(all="ignore"):
        value = program.function()(PLAIN, *program.args)
    assert np.shape(value) == ()
    assert np.isfinite(value)


def test_source_is_what_runs() -> None:
    assert TWO.source() == ("def f(xp, x0, x1):\n    v2 = xp.sin(x0)\n    v3 = v2 * x1\n    return v3\n")
    assert TWO.function()(PLAIN, *TWO.args) == pytest.approx(np.sin(2.0) * np.array([1.0, 3.0]))


def test_pruning_leaves_the_value_and_moves_the_numbers_of_an_inner_function() -> None:
    unused = Step("exp", "xp.exp({0})", (1,))
    program = Program(
        TWO.inputs, (SIN, unused, Step("loop", LOOP.expression, (1,), (Step("scaled", "{0} * {1}", (4, 2)),)))
    )
    pruned = program.pruned()
    assert len(pruned.steps) == 2
    expected = np.sin(2.0) ** 3 * np.array([1.0, 3.0])
    for one in (program, pruned):
        assert one.function()(PLAIN, *one.args) == pytest.approx(expected)


def test_a_library_uses_its_own_expression() -> None:
    step = Step("relu", "xp.maximum({0}, 0.0)", (0,), own={"torch": "torch.nn.functional.relu({0})"})
    program = Program((Input(1.0),), (step,))
    assert "torch.nn.functional.relu(x0)" in program.source("torch")
    assert "xp.maximum(x0, 0.0)" in program.source("jax")


def test_a_finding_survives_its_file() -> None:
    empty = Input.of(np.zeros((0, 3)))
    program = Program((*TWO.inputs, empty), (SIN, Step("multiply", "{0} * {1}", (3, 1)), LOOP))
    finding = Finding(program, "gradient", "torch", "nan", "nan", "1.0", "x0", "words")
    assert Finding.from_plain(json.loads(json.dumps(finding.to_plain()))) == finding


def test_drawing_needs_only_whole_numbers() -> None:
    assert drawn(Random(1).randrange) == drawn(Random(1).randrange)
