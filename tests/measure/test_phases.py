"""The phases of `prepare`."""

import contextlib

import pytest

import adbench
from adbench.measure import phases
from adbench.measure.phases import collecting, phase


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that does not move by itself: the list holds its time in seconds."""
    shown = [0.0]
    monkeypatch.setattr(phases, "perf_counter_ns", lambda: round(shown[0] * 1e9))
    return shown


def test_a_phase_takes_as_long_as_its_block_and_equal_names_add_up(now: list[float]) -> None:
    with collecting() as seconds:
        with phase("trace"):
            now[0] += 2
        now[0] += 10
        with phase("compile"):
            now[0] += 3
        with phase("trace"):
            now[0] += 1
    assert seconds == {"trace": 3, "compile": 3}


def test_a_phase_within_another_is_counted_once(now: list[float]) -> None:
    with collecting() as seconds, phase("build"):
        now[0] += 1
        for _ in range(2):
            with phase("compile"):
                now[0] += 5
                with phase("lower"):
                    now[0] += 0.5
        now[0] += 1
    assert seconds == {"build": 2, "compile": 10, "lower": 1}


def test_a_failed_phase_is_timed(now: list[float]) -> None:
    with collecting() as seconds:
        with contextlib.suppress(ZeroDivisionError), phase("trace"):
            now[0] += 2
            raise ZeroDivisionError
        with phase("record"):
            now[0] += 1
    assert seconds == {"trace": 2, "record": 1}


def test_a_nested_collector_has_only_its_own_phases(now: list[float]) -> None:
    with collecting() as outer:
        with collecting() as inner, phase("trace"):
            now[0] += 2
        with phase("lower"):
            now[0] += 1
    assert (outer, inner) == ({"lower": 1}, {"trace": 2})


def test_without_a_collector_a_phase_does_nothing() -> None:
    with adbench.phase("trace"):
        pass
    with collecting() as seconds:
        pass
    assert seconds == {}


def test_jax_reports_tracing_lowering_and_compiling() -> None:
    pytest.importorskip("jax", reason="jax is not installed")
    from adbench.catalog import discovery
    from adbench.model.backend import from_module

    backend = from_module("jax", discovery.load(discovery.catalog().backends["jax"]))
    with collecting() as seconds:
        call = backend.prepare("gradient", lambda x: backend.xp.sum(backend.xp.sin(x) * x), (backend.xp.ones(3),), (0,))
    assert list(seconds) == ["trace", "lower", "compile"]
    assert min(seconds.values()) > 0
    assert call(backend.xp.ones(3))[0].shape == (3,)
