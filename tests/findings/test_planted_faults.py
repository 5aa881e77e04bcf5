"""Of fifty faults planted in long programs nearly all shrink to the operation at fault."""

import time
from random import Random

import pytest

from adbench.findings.programs.campaign import minimised
from adbench.findings.programs.expressions import table
from adbench.findings.programs.generation import Coverage, drawn
from tests.findings.planted import laboratory, planted

NAMES = """
sin cos exp tanh sinh cosh square expm1 tan asin acos atan asinh acosh atanh log log1p log2 log10 sqrt abs negative
maximum minimum hypot atan2 logaddexp clip where sum mean max prod std var sort cumulative_sum cumulative_prod flip
roll stack concat permute_dims tril triu linalg.det linalg.inv linalg.solve linalg.svdvals linalg.eigvalsh
"""
FUNCTIONS = NAMES.split()
ERRORS = (1.0, 1e-2, 1e-4, 1e-6)
LONG = range(25, 36)
MOST_OPERATIONS, MOST_SECONDS = 3, 60.0


def few_without(name: str, number: int) -> frozenset[str]:
    """The operations to leave out: three quarters of those that do not call this function, so that it is drawn soon."""
    others = [one for one in table() if f"xp.{name}(" not in one.definition + one.text]
    return frozenset(one.name for k, one in enumerate(others) if k % 4 != number % 4)


@pytest.mark.timeout(900)
@pytest.mark.exhaustive
@pytest.mark.parametrize("each", [5, 1])
def test_nine_in_ten_planted_faults_shrink_to_three_operations_in_a_minute(each: int) -> None:
    """One in each `each` functions has a fault."""
    random, sizes, slowest = Random(5), [], 0.0
    for number, name in list(enumerate(FUNCTIONS))[::each]:
        coverage = Coverage(without=few_without(name, number))
        lab = laboratory(planted(name, ERRORS[number % 4]))
        operators = ("gradient", "jvp") if number % 3 else ("hvp", "gradient")
        found = None
        for _ in range(12_000):
            program = drawn(random.randrange, coverage, 38)
            if f"xp.{name}(" not in program.source() or program.size not in LONG:
                continue
            if findings := lab.examine(program, operators).findings:
                found = next((one for one in findings if not one.edge and one.kind == "wrong"), None)
            if found is not None:
                break
        assert found is not None, f"no fault in {name} was found"
        started = time.monotonic()
        small = minimised(lab, found, MOST_SECONDS)
        slowest = max(slowest, time.monotonic() - started)
        at_fault = f"xp.{name}(" in small.program.source()
        sizes.append(small.program.size if at_fault else small.program.size + MOST_OPERATIONS)
        print(f"{name}: {found.program.size} -> {small.program.size} {small.program.operations}")
    few = sum(size <= MOST_OPERATIONS for size in sizes)
    print(f"{few} of {len(sizes)} have at most {MOST_OPERATIONS} operations; the slowest took {slowest:.1f} s")
    assert len(sizes) == 50 // each
    assert few >= 45 / each
    assert slowest <= MOST_SECONDS
