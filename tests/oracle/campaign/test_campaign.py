"""Every kind of fault is caught if double precision allows; the few missed ones are listed with the reason."""

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

import pytest

from tests.backends.loaded import backend
from tests.oracle.campaign import cases as at
from tests.oracle.campaign.examine import SEED, examined, words
from tests.oracle.campaign.fault import Fault
from tests.oracle.campaign.of_calls import CALLS
from tests.oracle.campaign.of_results import RESULTS
from tests.oracle.campaign.of_rules import RULES
from tests.oracle.campaign.of_second_order import SECOND_ORDER
from tests.support.marks import one_in

pytestmark = pytest.mark.timeout(600)

FAULTS = [*RESULTS, *RULES, *SECOND_ORDER, *CALLS]
KINDS = {kind: list(those) for kind, those in groupby(sorted(FAULTS, key=lambda f: f.kind), key=lambda f: f.kind)}

GETS_PAST = {
    "maximum: the whole share to each of a tie": "at a kink each entry is judged alone, not the sum of a tie's shares",
}
"""Kind -> why some of its instances are not caught yet."""

RIGHT_CASES = {name: value for name, value in vars(at).items() if name.isupper() and hasattr(value, "f")}


def quick(names: Iterable[str], is_large: Callable[[str], bool]) -> list[Any]:
    """The names as parameters; the large ones are slow."""
    return [pytest.param(name, marks=pytest.mark.slow) if is_large(name) else name for name in names]


def is_large(kind: str) -> bool:
    return any(str(size) in kind for size in (300, "1e5", 100000))


@pytest.mark.parametrize("name", quick(RIGHT_CASES, lambda name: name.startswith(("LARGE", "LONG"))))
def test_correct_backends_are_right_on_the_cases_of_the_campaign(name: str) -> None:
    case = RIGHT_CASES[name]
    operators = case.operators or ("value", "gradient", "value_and_gradient", "jvp", "vjp", "hvp", "hessian")
    if name.startswith("LARGE"):
        operators = ("value", "gradient", "vjp")
    found = words(backend("tape"), case, tuple(operators), SEED)
    assert "wrong" not in found.values(), found


def outcomes(faults: list[Fault], record_property: Callable[[str, object], None]) -> Counter[str]:
    found = {str(fault): examined(fault) for fault in faults}
    count = Counter(found.values())
    resolvable = len(faults) - count["not resolvable"]
    record_property("mutant", [faults[0].kind, "gross", resolvable, count["caught"]])
    past = [name for name, outcome in found.items() if outcome == "got past"]
    if faults[0].kind not in GETS_PAST:
        assert not past, past
    return count


@pytest.mark.parametrize("kind", one_in(3, quick(KINDS, is_large)))
def test_a_fault_of_each_kind_is_caught(kind: str, record_property: Callable[[str, object], None]) -> None:
    """One instance of each: a few seconds for all of them."""
    outcomes(KINDS[kind][:1], record_property)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
def test_all_faults_of_each_kind_are_caught(kind: str, record_property: Callable[[str, object], None]) -> None:
    outcomes(KINDS[kind], record_property)


def test_there_are_many_kinds_of_faults_and_no_two_are_the_same() -> None:
    names = list(map(str, FAULTS))
    assert len(set(names)) == len(names)
    assert len(KINDS) >= 106
