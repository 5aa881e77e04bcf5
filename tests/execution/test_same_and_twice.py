"""A complete run with real processes: two copies of a backend do not differ significantly, and one that works twice
takes about twice as long."""

from pathlib import Path

import pytest

from adbench.execution.session import prepare
from adbench.model.record import Run
from adbench.results.analysis import Ratio, floor, ratios
from tests.support.files import CASE, RIGHT, write

MARGIN = 0.10  # for a machine shared with others


def repeating(times: int) -> str:
    """The correct backend, computing its gradient this often in every call."""
    work = f"    for _ in range({times}):\n        slope = 1 / (1 + np.exp(-x))\n    return slope\n"
    return RIGHT.replace("    return 1 / (1 + np.exp(-x))\n", work)


pytestmark = pytest.mark.xdist_group("same and twice")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Eight launches of the same file under two names, and of one that works twice.

    Measured again, twice at most, where the session itself says that it was too noisy to decide.
    """
    for _ in range(3):
        found = measured(tmp_path_factory.mktemp("same"))
        if not floor(found, MARGIN).noisy:
            break
    return found


def measured(folder: Path) -> Run:
    write(folder, softplus=CASE, once=repeating(40), same=repeating(40), twice=repeating(80))
    made = prepare(
        cases=[str(folder / "softplus.py")],
        backends=[str(folder / f"{name}.py") for name in ("once", "same", "twice")],
        sizes=["100"],
        operators=["gradient"],
        quick=True,
        launches=8,
        memory=False,
        reference="once",
    )
    for _ in made.events():
        pass
    return made.result()


def between(run: Run, a: str, b: str) -> Ratio:
    (found,) = (r for r in ratios(run, MARGIN) if {r.a.backend, r.b.backend} == {a, b})
    return found


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_copies_of_a_backend_do_not_differ_significantly(run: Run) -> None:
    found = between(run, "once", "same")
    assert found.interval is not None
    assert found.interval.low <= 1 <= found.interval.high or found.word not in ("faster", "slower")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_twice_the_work_takes_about_twice_as_long(run: Run) -> None:
    for name in ("once", "same"):
        found = between(run, name, "twice")
        assert found.interval is not None
        ratio = found.interval.estimate if found.a.backend == "twice" else 1 / found.interval.estimate
        assert 1.6 < ratio < 2.5
        assert found.word == ("slower" if found.a.backend == "twice" else "faster")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_control_gives_the_noise_floor_of_the_session(run: Run) -> None:
    assert run.reference_backend == "once"
    (record,) = (record for record in run.records if record.job.backend == "once")
    assert record.control is not None
    assert len(record.control.launches) == 8
    found = floor(run, MARGIN)
    assert found.groups
