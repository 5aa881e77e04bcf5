"""Correct backends raise no alarm: built-in cases and random functions, at random points, for every library."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from adbench import Case
from adbench.catalog.discovery import catalog
from adbench.execution.operators import fallback
from adbench.execution.operators.prepared_point import CasePoint, PointReferences, examined, point
from adbench.execution.operators.references import known_at
from adbench.model.backend import Backend
from adbench.model.case import function_of
from adbench.model.operator import definition, needs_second_order
from tests.backends.loaded import backend
from tests.oracle import expressions
from tests.oracle.difficult import FAMILIES
from tests.oracle.exact import Exact
from tests.support.marks import mostly_slow

pytestmark = pytest.mark.xdist_group("false alarms")  # counted together

LIBRARIES = ("tape", "jax", "torch", "autograd")
AT_DIFFICULT_POINTS = ("tape", "autograd", "jax_eager", "torch", "casadi")
# Not the variants of a case: the same function of fewer arguments, or on single elements.
CASES = {
    name: case
    for name, case in catalog().cases.items()
    if not case.is_trap and case.same_twin in ("", name) and "elements" not in case.tags
}
FAST = (
    *("cholesky", "eight_schools", "helmholtz_energy", "log_determinant"),
    *("matrix_product", "normal_log_density", "normal_log_density_loop", "product_plus_constant", "projectile"),
    *("quadratic_form", "rosenbrock", "solve"),
)  # fast ones, at least one of each kind
GROUPS, TREES, POINTS = 8, 6, 3
SEED = 20_000  # of the first point; the next ones follow

Record = Callable[[str, object], None]


@dataclass
class Tally:
    """The counts of compared numbers and points, and the sentences about wrong ones."""

    words: Counter[str]
    points: int
    alarms: list[str]
    failures: list[str]

    def judge(self, at: CasePoint, who: str, operator: str, result: Any, known: PointReferences) -> None:
        verdict = examined(at, operator, result, known, None)[0]
        unresolved = {"verified": verdict.inconclusive - verdict.blind, "blind": verdict.blind}
        compared = {"right": verdict.right, "wrong": verdict.wrong, **unresolved}
        if verdict.value is not None:
            compared[verdict.value.word] += 1
        self.words.update(compared)
        if verdict.word == "wrong":
            self.alarms.append(f"{who} {operator} seed {at.seed} size {at.size}: {verdict.sentence}")


@pytest.fixture(scope="module")
def total() -> Counter[str]:
    return Counter()


@pytest.fixture
def tally(total: Counter[str], record_property: Record) -> Iterator[Tally]:
    found = Tally(Counter(), 0, [], [])
    yield found
    total.update(found.words)


@pytest.fixture(scope="module")
def libraries() -> list[Backend]:
    """All four are among the tests' requirements."""
    return [backend(name) for name in LIBRARIES]


class Prepared:
    """A backend's operator on a case and size, prepared once: its results at other points are judged too."""

    def __init__(self, backend: Backend, operator: str) -> None:
        self.backend, self.operator = backend, operator
        self.call: Callable[..., Any] | None = None
        self.missing = ""

    def at(self, at: CasePoint) -> Any:
        args = self.backend.native_inputs((*at.args, *at.vector(self.operator)))
        if self.call is None:
            f = function_of(at.case, at.names, self.backend.xp, at.size)
            self.call = fallback.prepare(self.backend, definition(self.operator).name, f, args, at.wrt).call
        return self.backend.numpy_result(self.call(*args))


def judge_all(tally: Tally, prepared: list[Prepared], at: CasePoint, known: PointReferences, what: str) -> None:
    for operator in prepared:
        if operator.missing:
            continue
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")  # warnings of libraries are not verdicts
                result = operator.at(at)
        except Exception as error:  # a library may lack a function or refuse a constant: that is "failed", not "wrong"
            operator.missing = f"{operator.backend.name} {operator.operator} {what}: {error}"
            tally.failures.append(operator.missing)
            continue
        tally.judge(at, f"{operator.backend.name} {what}", operator.operator, result, known)


def closed(tally: Tally, record_property: Record) -> None:
    """Counts for the terminal at the end, and the alarms."""
    record_property("false alarms", [tally.words["wrong"], sum(tally.words.values()), tally.points])
    assert not tally.alarms, "\n".join(tally.alarms)


@pytest.mark.parametrize("name", mostly_slow(sorted(CASES), fast=FAST))
def test_no_library_is_called_wrong_on_a_built_in_case(
    name: str, libraries: list[Backend], nightly: int, tally: Tally, record_property: Record
) -> None:
    case, size = CASES[name], CASES[name].quick_sizes[0]
    operators = ["jacobian", "jvp", "vjp"] if case.is_array_valued else ["value_and_gradient", "jvp", "hvp"]
    prepared = [Prepared(library, operator) for library in libraries for operator in operators]
    for seed in range(SEED, SEED + 3 * nightly):
        at = point(case, size, seed)
        known = known_at(at, second_order="hvp" in operators, hessian=False, seconds=1.0)
        tally.points += 1
        judge_all(tally, prepared, at, known, name)
        if case.gradient is not None:
            by_hand = case.gradient(**dict(zip(at.names, at.args, strict=True)))
            tally.judge(at, f"by hand {name}", "gradient", by_hand, known)
    closed(tally, record_property)


@pytest.mark.parametrize("group", mostly_slow(range(GROUPS), fast=(2,)))
def test_no_library_is_called_wrong_on_random_functions(
    group: int, libraries: list[Backend], nightly: int, tally: Tally, record_property: Record
) -> None:
    for number in range(TREES * nightly):
        rng = np.random.default_rng([SEED, group, number])
        text = expressions.scalar(rng, int(rng.integers(2, 6)))
        f = expressions.function(text)
        active = ("x", "y", "s") if rng.uniform() < 0.7 else ("A", "x")
        case = Case(f=f, inputs=lambda n, rng: expressions.inputs(rng), wrt=active, sizes=(1,))
        prepared = [Prepared(library, "value_and_gradient") for library in libraries]
        prepared += [Prepared(libraries[0], "jvp"), Prepared(libraries[0], "hvp"), Prepared(libraries[2], "hvp")]
        for seed in range(SEED + 100 * number, SEED + 100 * number + POINTS):
            at = point(case, 1, seed)
            second = seed % POINTS == 0
            known = known_at(at, second_order=second, hessian=False, seconds=1.0)
            tally.points += 1
            asked = [one for one in prepared if second or not needs_second_order(one.operator)]
            judge_all(tally, asked, at, known, f"{text!r} in {active}")
    closed(tally, record_property)


OVERFLOW = "a factor of the derivative overflows or underflows before it is multiplied, as in trap_quotient_large"
EVERY = dict.fromkeys(AT_DIFFICULT_POINTS, OVERFLOW)
TRULY_WRONG: dict[tuple[str, str], dict[str, str]] = {
    ("near-singular matrices", "log determinant"): {
        "casadi": "the determinant of scalars is a sum over permutations, and cancels where elimination does not",
    },
    ("large scales", "logarithms"): dict.fromkeys(("autograd", "jax_eager"), "0: 1 / x² underflows"),
    ("large scales", "shares"): {"autograd": OVERFLOW, "jax_eager": OVERFLOW},
    ("small scales", "reciprocals"): {"autograd": OVERFLOW},
    ("small scales", "shares"): {"autograd": OVERFLOW, "jax_eager": OVERFLOW},
    ("subnormal numbers", "logarithms of small"): EVERY,
    ("saturation", "logistic"): dict.fromkeys(
        AT_DIFFICULT_POINTS, "0: the square in the quotient's rule overflows at -700"
    ),
    ("saturation", "softplus"): {"autograd": "abs has the derivative x / |x|, whose own is rounding, not 0"},
    ("power laws", "|x|³ at zero"): {"tape": "NaN: its convention for a second derivative through |x| at 0"},
    ("power laws", "x log x"): {"autograd": OVERFLOW, "jax_eager": OVERFLOW},
    ("power laws", "x^-3"): {"casadi": OVERFLOW},
    ("mixed sizes", "product"): {
        "autograd": "quotients of the product, whose differences cancel",
        "tape": "sums over pairs of other factors, in which small ones are lost",
    },
}
"""(family, function) -> library -> why a verdict "wrong" is correct there."""


OPEN = frozenset({
    ("cancellation", "difference of squares"), ("cancellation", "sin² + cos² - 1 + x"),
    ("near-singular matrices", "solve"), ("power laws", "ratio of powers"),
})  # fmt: skip
"""(family, function) where a correct library may still be called wrong; remove a line with its cause."""


class Perfect:
    """The derivatives of a function of one vector at a point, each rounded once."""

    def __init__(self, text: Callable[[Any, Any], Any], at: CasePoint) -> None:
        self._exact, self._at = Exact(text, at.args[0]), at

    def result(self, operator: str) -> Any:
        if operator == "value":
            return np.float64(self._exact.value())
        if operator == "gradient":
            return (self._exact.gradient(),)
        if operator == "hessian":
            return ((self._exact.hessian(),),)
        slope, product = self._exact.along(self._at.direction(0)[0])
        return np.float64(slope) if operator == "jvp" else (product,)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("family", mostly_slow(FAMILIES, fast=()))
def test_no_library_is_called_wrong_at_difficult_points(
    family: str, nightly: int, tally: Tally, record_property: Record
) -> None:
    """Nor the perfect backend, whose derivatives come from 4000 bits and are rounded once."""
    operators = ("value", "gradient", "jvp", "hvp", "hessian")
    for name, (text, make) in FAMILIES[family].items():
        case = Case(f=text, inputs=lambda n, rng, make=make: {"x": make(rng)}, wrt=("x",), sizes=(1,))
        wrong, before = TRULY_WRONG.get((family, name), {}), len(tally.alarms)
        prepared = [Prepared(backend(library), o) for library in AT_DIFFICULT_POINTS for o in operators]
        for seed in range(1, 1 + 2 * nightly):
            at = point(case, 1, seed)
            known = known_at(at, second_order=True, hessian=True, seconds=2.0)
            tally.points += 1
            perfect = Perfect(text, at)
            for operator in operators:
                tally.judge(at, f"perfect {name}", operator, perfect.result(operator), known)
            judge_all(tally, [one for one in prepared if one.backend.name not in wrong], at, known, name)
        if (family, name) in OPEN:
            print("\n".join(tally.alarms[before:]))
            del tally.alarms[before:]
    closed(tally, record_property)


@pytest.mark.exhaustive
def test_the_search_for_false_alarms_was_large(total: Counter[str]) -> None:
    entries = sum(total.values())
    if not entries:
        pytest.skip("nothing was searched in this run")
    print(f"of {entries} entries: {dict(total)}")
    assert entries >= 20_000
    assert total["right"] > 0.4 * entries


CANCELLING: dict[str, Callable[[Any, Any], Any]] = {
    "log sum exp": lambda xp, x: xp.logsumexp(x),
    "the same in steps": lambda xp, x: xp.log(xp.sum(xp.exp(x))),
    "variance": lambda xp, x: xp.sum((x - xp.mean(x)) ** 2),
    "a difference": lambda xp, x: xp.sin(3 * (x[0] - x[1])),
    "linear": lambda xp, x: xp.sum(3 * x) / 7,
    "nearly cancelling": lambda xp, x: xp.logsumexp(x) + 1e-13 * xp.sum(x**2),
}


@pytest.mark.parametrize("name", mostly_slow(CANCELLING, fast=("variance",)))
def test_a_hessian_that_cancels_along_the_direction_raises_no_alarm(
    name: str, nightly: int, tally: Tally, record_property: Record
) -> None:
    """Functions that are invariant when all inputs move together: H v is zero, with rounding errors in doubles."""
    for size in (2, 5):
        case = Case(f=CANCELLING[name], inputs=lambda n, rng: {"x": rng.uniform(0.4, 1.1, n)}, wrt=("x",), sizes=(2, 5))
        prepared = [Prepared(backend("tape"), operator) for operator in ("hvp", "hessian")]
        for seed in range(SEED, SEED + 20 * nightly):
            at = point(case, size, seed)
            known = known_at(at, second_order=True, hessian=True, seconds=3.0)
            tally.points += 1
            judge_all(tally, prepared, at, known, name)
    if name != "nearly cancelling":
        assert tally.words["right"] == sum(tally.words.values())
    closed(tally, record_property)
