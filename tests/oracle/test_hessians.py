"""Hessians are judged entry by entry: a wrong one is found and named, for any structure of inputs."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from adbench import Case, tape
from adbench.execution.operators.prepared_point import PointReferences, examined, point
from adbench.execution.operators.references import known_at
from adbench.model import tree
from adbench.oracle.compute import reference
from adbench.oracle.leaves import Point
from adbench.oracle.operators import judge_operator
from adbench.oracle.reference import Reference
from adbench.oracle.second_order import hessian_reference, hvp_reference
from adbench.oracle.subject import Effort
from adbench.oracle.verdict import Verdict
from tests.oracle import closed_forms
from tests.oracle.scalars import subject_of

A = np.random.default_rng(6).normal(size=(4, 3))
ARGS = ({"w": A, "count": 3, "b": [0.5, np.array([1.5, -0.25])]}, np.array([0.3, -1.2, 0.7]), 2.0)
AT = Point(ARGS, (0, 1), ("params", "x", "scale"))
N = 4 * 3 + 1 + 2 + 3


def exact(n: int) -> tuple[Any, Any]:
    """A gradient and a Hessian, dense, symmetric and of entries of all sizes, in extended precision."""
    rng = np.random.default_rng(n)
    whole = (rng.normal(size=(n, n)) * 10.0 ** rng.uniform(-4, 1, (n, n))).astype(np.longdouble)
    return rng.normal(size=n).astype(np.longdouble), whole + whole.T


@cache
def known(n: int) -> Reference:
    at = AT if n == N else Point((np.zeros((n // 10, 10)),), (0,), ("x",))
    return closed_forms.hessian(at, *exact(n))


def nested(whole: Any) -> Any:
    """The Hessian as operators return it: each leaf of the active inputs replaced by a structure like these."""
    if whole.shape != (N, N):
        return ((whole.reshape(len(whole) // 10, 10, len(whole) // 10, 10),),)
    active = tuple(ARGS[k] for k in AT.wrt)
    shapes = [leaf.values.shape for leaf in AT.leaves]
    ends = np.cumsum([0, *AT.sizes])

    def like(parts: list[Any]) -> Any:
        replaced = AT.replaced([part if part is not None else None for part in parts], lambda leaf: None)
        return tuple(replaced[k] for k in AT.wrt)

    def block(i: int, j: int) -> Any:
        return whole[ends[i] : ends[i + 1], ends[j] : ends[j + 1]].reshape(shapes[i] + shapes[j])

    assert len(tree.leaves(active)) == len(shapes) + 1
    return like([like([block(i, j) for j in range(len(shapes))]) for i in range(len(shapes))])


def verdict(n: int, fault: Callable[[Any], None] = lambda whole: None) -> Verdict:
    whole = exact(n)[1].astype(np.float64)
    fault(whole)
    return judge_operator("hessian", nested(whole), known(n))


@pytest.mark.parametrize("n", [N, 60, 300])
def test_a_correct_hessian_is_right(n: int) -> None:
    found = verdict(n)
    assert found.word == "right", found.sentence
    assert (found.hidden is None) == (n <= 64)


def test_a_wrong_entry_is_named_by_both_of_its_inputs() -> None:
    """In the order of the leaves: b[0], b[1], w, and x."""

    def off(whole: Any) -> None:
        whole[N - 2, 1 + 1] *= 1 + 1e-6

    found = verdict(N, off)
    assert found.wrong >= 1
    assert "the worst is H[x[1], params['b'][1][1]]: got " in found.sentence
    assert found.worst is not None
    assert found.worst.digits_correct == pytest.approx(6, abs=0.5)


def scaled(whole: Any, i: int, j: int) -> None:
    whole[i, j] *= 1 + 1e-6


def exchanged(whole: Any, i: int, j: int) -> None:
    whole[[i, j]] = whole[[j, i]]


def flipped(whole: Any, i: int, j: int) -> None:
    whole[i, j] *= -1


def forgotten(whole: Any, i: int, j: int) -> None:
    whole[i, j] = 0.0


def a_nan(whole: Any, i: int, j: int) -> None:
    whole[i, j] = np.nan


@pytest.mark.parametrize("fault", [scaled, exchanged, flipped, forgotten, a_nan])
@pytest.mark.parametrize("n", [N, 60, 300])
def test_every_planted_fault_is_found(n: int, fault: Callable[[Any, int, int], None]) -> None:
    seen = {index for index, _ in known(n).outputs}
    rng = np.random.default_rng(n)
    for _ in range(6):
        i, j = map(int, rng.choice([k for k in range(n) if n <= 64 or k not in seen], 2, replace=False))
        found = verdict(n, lambda whole, i=i, j=j: fault(whole, i, j))
        assert found.word == "wrong", (i, j, found.sentence)


def test_two_entries_hide_from_no_pair_of_directions() -> None:
    """A fault of a 2 × 2 Hessian that is zero along one vector of signs, and along its opposite."""

    def hidden_from_signs(whole: Any) -> None:
        whole[0, 0] += 1e-3
        whole[0, 1] -= 1e-3

    at = Point((np.zeros(2),), (0,), ("x",))
    right = np.array([[2.0, 1.0], [1.0, 3.0]])
    reference = closed_forms.hessian(at, np.zeros(2).astype(np.longdouble), right.astype(np.longdouble))
    assert judge_operator("hessian", ((right,),), reference).word == "right"
    hidden_from_signs(wrong := right.copy())
    found = judge_operator("hessian", ((wrong,),), reference)
    assert found.word == "wrong"
    assert "H[x[0], x[0]]: got 2.001" in found.sentence or "H[x[0], x[1]]: got 0.999" in found.sentence


def test_a_claim_is_about_the_whole_hessian() -> None:
    """Differences have errors relative to the largest entries, also for zero entries or rows."""
    whole = np.diag([2.0, 3.0, 0.0])
    at = Point((np.zeros(3),), (0,), ("x",))
    reference = closed_forms.hessian(at, np.zeros(3).astype(np.longdouble), whole.astype(np.longdouble))
    for off, word in ((1e-7, "approximate"), (1e-4, "wrong"), (np.nan, "wrong")):
        found = judge_operator("hessian", ((whole + off,),), reference, claimed_relative_error=1e-6)
        assert found.word == word, found.sentence
    assert judge_operator("hessian", ((whole + 1e-7,),), reference).word == "wrong"


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (None, "the Hessian must be a tuple, one part per argument; it is a NoneType"),
        ((np.zeros((3, 3)),), "the Hessian must have 2 parts, one per argument; it has 1"),
        ((nested(np.zeros((N, N)))[0], np.zeros((3, 3))), "the Hessian's part for x must be a tuple"),
        ((nested(np.zeros((N, N)))[0], nested(np.zeros((N, N)))[0]), "the Hessian's part for x must be a tuple"),
        (
            (nested(np.zeros((N, N)))[0], (nested(np.zeros((N, N)))[1][0], np.zeros((3, 2)))),
            r"the block of x and x must have the shape \(3, 3\) in the Hessian; it has \(3, 2\)",
        ),
        (
            (nested(np.zeros((N, N)))[0], (nested(np.zeros((N, N)))[1][0], np.zeros((3, 3), np.float32))),
            "the block of x and x must be float64; it is float32",
        ),
    ],
)
def test_a_hessian_of_another_structure_is_wrong_and_described(broken: Any, said: str) -> None:
    import re

    found = judge_operator("hessian", broken, known(N))
    assert found.word == "wrong"
    assert re.search(said, found.sentence), found.sentence


def declared_case() -> Case:
    """x · stop(x): its gradient is x by declaration, and its Hessian is unknown."""
    return Case(
        f=lambda xp, x: xp.sum(x * x),
        inputs=lambda n, rng: {"x": np.array([3.0, 2.0])},
        wrt=("x",),
        sizes=(1,),
        gradient=lambda x: (x,),
        declared=True,
    )


def test_second_order_of_a_declared_gradient_is_blind_with_a_reason() -> None:
    at = point(declared_case(), 1, 0)
    found = known_at(at, second_order=True, hessian=True, seconds=1.0)
    assert PointReferences.from_plain(found.to_plain()).hvp is not None
    for operator, result in (("hvp", (np.ones(2),)), ("hessian", ((np.eye(2),),))):
        verdict = examined(at, operator, result, found, None)[0]
        assert verdict.word == "blind"
        assert "the reference is unknown for" in verdict.sentence
        assert "(the case declares its gradient but not its second derivatives)" in verdict.sentence
        assert examined(at, operator, None, found, None)[0].word == "wrong"


def test_a_black_box_gets_second_derivatives_from_differences_on_request() -> None:
    x = np.linspace(0.5, 1.5, 20)  # more rows than differences can afford; sums cover the others

    def f(x: Any) -> Any:
        return np.sum(np.sin(x[1:] * x[:-1])) ** 2

    def text(xp: Any, x: Any) -> Any:
        return xp.sum(xp.sin(x[1:] * x[:-1])) ** 2

    black, white = (subject_of(f, (x,), (0,), text=known_text) for known_text in (None, text))
    effort = Effort(second_differences=True)
    truth = tape.hessian(lambda x: tape.sum(tape.sin(x[1:] * x[:-1])) ** 2, x)[2]
    assert judge_operator("hessian", ((truth,),), hessian_reference(white, effort)).word == "right"
    for error, word in ((0.0, "verified"), (1e-6, "wrong")):
        changed = truth.copy()
        changed[3, 4] *= 1 + error  # whichever rows are examined
        found = judge_operator("hessian", ((changed,),), hessian_reference(black, effort))
        assert found.word == word, found.sentence
        assert found.method == "nine-point second differences in double precision"
    v = Point((x,), (0,), ("x",)).direction(0, 0)[0]
    along = hvp_reference(black, reference(black, effort).scalar, effort)
    assert judge_operator("hvp", (truth @ v,), along).word in ("right", "verified")
    assert judge_operator("hvp", (truth @ v * (1 + 1e-6),), along).word == "wrong"
    assert judge_operator("hvp", (truth @ v,), hvp_reference(black, along.scalar, Effort())).word == "blind"
