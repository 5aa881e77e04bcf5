"""The teaching engine of docs/examples/continuations.py is short and right."""

from __future__ import annotations

import math
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

SOURCE = Path(__file__).parents[2] / "docs" / "examples" / "continuations.py"


@pytest.fixture
def lesson():
    return SimpleNamespace(**runpy.run_path(str(SOURCE)))


def test_the_teaching_engine_fits_in_sixty_lines():
    assert len(SOURCE.read_text(encoding="utf-8").splitlines()) <= 60


def test_the_example_of_the_post_has_value_29_66_and_gradient_2_2_and_20_6(lesson):
    x1, x2 = lesson.var(10.3), lesson.var(1.1)
    y = x1 * x2 * 2 + 7
    assert y.val == pytest.approx(29.66, rel=1e-15)
    assert lesson.grad(y, [x1, x2]) == pytest.approx([2.2, 20.6], rel=1e-15)


def test_run_as_a_program_it_prints_the_example(capsys):
    runpy.run_path(str(SOURCE), run_name="__main__")
    value, *gradient = capsys.readouterr().out.replace("[", "").replace("]", "").replace(",", "").split()
    assert [float(value), *map(float, gradient)] == pytest.approx([29.66, 2.2, 20.6], rel=1e-15)


def test_a_value_used_twice_adds_its_contributions(lesson):
    x = lesson.var(0.7)
    assert lesson.grad(x * x + lesson.exp(x) * x, [x]) == pytest.approx([1.4 + 1.7 * math.exp(0.7)], rel=1e-15)


def test_a_constant_pushes_no_continuation(lesson):
    x = lesson.var(2.0)
    assert len(lesson.stack) == 0
    _ = 3 * x + 1
    assert len(lesson.stack) == 2


def test_gradients_of_earlier_results_are_right_after_later_operations(lesson):
    x = lesson.var(3.0)
    y = x * x
    z = y * x
    assert lesson.grad(y, [x]) == [6.0]
    assert lesson.grad(z, [x, y]) == [27.0, 3.0]
