"""Random programs use the table of operations: each as text that computes what its definition computes."""

import re
from random import Random

import numpy as np
import pytest

from adbench.findings.conform.places import places
from adbench.findings.operations import OPERATIONS
from adbench.findings.operations.as_text import own_text, text_of
from adbench.findings.programs.expressions import STRUCTURAL, inner, table
from adbench.findings.programs.generation import Coverage, drawn
from adbench.findings.programs.random_program import Input, Program, Step
from adbench.model.namespace import PLAIN


def of_text(name: str, args: tuple[object, ...]) -> object:
    """The operation's value in a program that has only its text."""
    text, definition = text_of(OPERATIONS[name])
    step = Step(name, text, tuple(range(len(args))), definition=definition)
    program = Program(tuple(map(Input.of, args)), (step,))
    with np.errstate(all="ignore"):
        return program.function()(PLAIN, *args)


def test_the_text_of_every_operation_computes_its_definition() -> None:
    pytest.importorskip("scipy")
    for name, operation in OPERATIONS.items():
        place = next(places(operation))
        with np.errstate(all="ignore"):
            expected = np.asarray(operation.definition(PLAIN, *place.arguments))
        assert np.array_equal(np.asarray(of_text(name, place.arguments)), expected, equal_nan=True), name


def test_a_text_has_no_name_of_our_modules() -> None:
    for operation in OPERATIONS.values():
        text, definition = text_of(operation)
        program = Program(
            tuple(Input(0.0) for _ in operation.inputs),
            (Step("one", text, tuple(range(operation.arity)), definition=definition),),
        )
        names = compile(program.source(), "<program>", "exec").co_names
        assert not {name for name in names if name.startswith("_")}, operation.name
        assert "adbench" not in program.source()


def test_own_expressions_have_places_for_their_arguments() -> None:
    assert own_text("torch.lerp(x, y, z)") == "torch.lerp({0}, {1}, {2})"
    assert (
        own_text("x.scatter_add(0, torch.tensor([0, 0, 2]), y)") == "{0}.scatter_add(0, torch.tensor([0, 0, 2]), {1})"
    )
    for expression in table():
        for text in expression.own.values():
            assert set(re.findall(r"{(\d)}", text)) <= set(map(str, range(expression.arity))), expression.name


def test_programs_draw_nearly_all_of_the_vocabulary() -> None:
    random, coverage, found = Random(0), Coverage(), set()
    for _ in range(700):
        found.update(drawn(random.randrange, coverage).operations)
    every = {one.name for one in STRUCTURAL + table()}
    assert len(every) > 330
    assert len(every - found) < 0.06 * len(every)
    assert len(inner()) > 10


def test_operations_that_no_library_has_are_not_drawn() -> None:
    without = frozenset(one.name for one in table() if one.name != "tanh")
    random, coverage = Random(0), Coverage(without=without)
    names = {name for _ in range(30) for name in drawn(random.randrange, coverage, 5).operations}
    assert "tanh" in names
    assert not (names - {one.name for one in STRUCTURAL} - {"tanh", "add", "loop", "derivative"}) - {
        one.name for one in inner()
    }


def test_an_argument_without_a_derivative_is_a_constant() -> None:
    random, coverage = Random(0), Coverage()
    found = 0
    for _ in range(2_000):
        program = drawn(random.randrange, coverage, 3)
        for step in program.steps:
            domains = OPERATIONS[step.name].domain if step.name in OPERATIONS else ()
            for domain, operand in zip(domains, step.operands, strict=False):
                if not domain.active:
                    assert operand not in program.wrt, step
                    assert operand < len(program.inputs), step
                    found += 1
    assert found > 3
