"""Python's garbage collector is paused while a tape grows, and restored in every way out."""

import gc
import sys
import threading

import numpy as np
import pytest

from adbench import tape
from adbench.tape import levels
from adbench.tape.fast import collector, switch
from adbench.tape.fast.collector import PATIENCE

TURNS = 4 * collector.LONG
USUAL = (700, 10, 10)


@pytest.fixture(autouse=True)
def restored():
    """Start with usual thresholds and no expectation; afterwards, everything is as it was."""
    before, was_on = gc.get_threshold(), gc.isenabled()
    gc.enable()
    gc.set_threshold(*USUAL)
    gc.collect()
    tape.gradient(long, 1.3)
    tape.gradient(lambda x: x, 1.3)
    collector._CollectorState.expected = False
    yield
    assert not collector._holders
    gc.set_threshold(*before)
    (gc.enable if was_on else gc.disable)()


def long(x):
    s = x
    for _ in range(TURNS):
        s = s + (x * x + 1.0) / s
    return s


class Seen(list):
    """The thresholds at the end of a function, and whether the collector was on."""

    def at_end_of(self, f):
        def wrapped(x):
            y = f(x)
            self.append((gc.get_threshold()[0], gc.isenabled()))
            return y

        return wrapped


def test_a_long_tape_pauses_the_collector_and_a_short_one_does_not():
    seen = Seen()
    tape.gradient(seen.at_end_of(lambda x: x * x), 1.3)
    tape.gradient(seen.at_end_of(long), 1.3)
    assert seen == [(700, True), (PATIENCE, True)]
    assert gc.get_threshold() == USUAL


def test_after_a_long_tape_the_next_one_starts_with_a_pause():
    seen = Seen()
    tape.gradient(long, 1.3)
    tape.gradient(seen.at_end_of(lambda x: x * x), 1.3)
    assert gc.get_threshold() == USUAL
    tape.gradient(seen.at_end_of(lambda x: x * x), 1.3)
    assert [threshold for threshold, _ in seen] == [PATIENCE, 700]


def test_collections_still_happen_at_the_bound(monkeypatch):
    monkeypatch.setattr(collector, "PATIENCE", 2000)
    counts = []
    watch = lambda phase, info: counts.append(phase)  # noqa: E731
    gc.callbacks.append(watch)
    try:
        tape.gradient(long, 1.3)
    finally:
        gc.callbacks.remove(watch)
    assert 2 <= len(counts) // 2 <= 2 + 8 * TURNS // 2000
    assert gc.get_threshold() == USUAL


def test_cyclic_garbage_of_the_program_goes_after_the_block():
    class Node:
        pass

    import weakref

    refs = []

    def f(x):
        y = long(x)
        node = Node()
        node.me = node
        refs.append(weakref.ref(node))
        return y

    tape.gradient(f, 1.3)
    gc.collect()
    assert refs[0]() is None


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit])
def test_an_exception_restores_the_collector(error):
    def f(x):
        long(x)
        assert gc.get_threshold()[0] == PATIENCE
        raise error

    with pytest.raises(error):
        tape.gradient(f, 1.3)
    assert gc.get_threshold() == USUAL
    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off():
    gc.disable()
    seen = Seen()
    for _ in range(2):
        tape.gradient(seen.at_end_of(long), 1.3)
    assert seen == [(700, False)] * 2
    assert gc.get_threshold() == USUAL
    assert not gc.isenabled()


def test_a_threshold_of_zero_stays():
    gc.set_threshold(0, 10, 10)
    tape.gradient(long, 1.3)
    assert gc.get_threshold() == (0, 10, 10)


def test_thresholds_that_the_function_sets_stay():
    def f(x):
        y = long(x)
        gc.set_threshold(500, 5, 5)
        return y

    tape.gradient(f, 1.3)
    assert gc.get_threshold() == (500, 5, 5)


def test_a_collector_that_the_function_turns_off_stays_off():
    tape.gradient(lambda x: gc.disable() or long(x), 1.3)
    assert not gc.isenabled()
    gc.enable()
    tape.gradient(lambda x: [long(x), gc.disable()][0], 1.3)
    assert not gc.isenabled()
    assert gc.get_threshold() == USUAL


def test_an_inner_block_leaves_the_pause_of_the_outer_one():
    def f(x):
        y = long(x)
        assert tape.gradient(long, 1.3)[1] != 0.0
        assert gc.get_threshold()[0] == PATIENCE
        with tape.nested():
            long(tape.Var(1.3))
        assert gc.get_threshold()[0] == PATIENCE
        return y

    tape.gradient(f, 1.3)
    assert gc.get_threshold() == USUAL


def test_an_outer_block_may_end_before_an_inner_one():
    outer, inner = tape.nested(), tape.nested()
    outer.__enter__()
    inner.__enter__()
    y = long(tape.Var(1.3))
    assert gc.get_threshold()[0] == PATIENCE
    outer.__exit__(None, None, None)
    assert gc.get_threshold() == USUAL
    del y


def test_other_functionals_restore_the_collector():
    x = np.array([1.3])
    f = lambda v: long(v[0])  # noqa: E731
    for call in (
        lambda: tape.vjp(f, x, 1.0),
        lambda: tape.jacobian(f, x),
        lambda: tape.hvp(f, x, x),
        lambda: tape.hessian(f, x),
    ):
        call()
        assert gc.get_threshold() == USUAL


def test_threads_share_a_pause_until_the_last_one_ends():
    first_in, second_done, seen = threading.Event(), threading.Event(), []

    def first(x):
        y = long(x)
        first_in.set()
        second_done.wait(10)
        seen.append(gc.get_threshold()[0])
        return y

    def second():
        first_in.wait(10)
        try:
            tape.gradient(lambda x: long(x) + undefined, 1.3)  # noqa: F821
        except NameError:
            second_done.set()

    threads = [threading.Thread(target=lambda: tape.gradient(first, 1.3)), threading.Thread(target=second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [PATIENCE]
    assert gc.get_threshold() == USUAL


def test_many_threads_leave_the_collector_as_it_was():
    threads = [threading.Thread(target=lambda: [tape.gradient(long, 1.3) for _ in range(10)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert gc.get_threshold() == USUAL


def test_without_fast_paths_nothing_is_paused():
    seen = Seen()
    with switch.switched_off():
        tape.gradient(seen.at_end_of(long), 1.3)
        assert collector.after_collection not in gc.callbacks
    assert seen == [(700, True)]
    assert collector.after_collection in gc.callbacks


def test_a_pause_whose_block_was_cut_off_ends_at_the_next_collection():
    block = tape.nested()
    block.__enter__()
    y = long(tape.Var(1.3))
    assert gc.get_threshold()[0] == PATIENCE
    tape.current_tape().clear()
    gc.collect()
    assert gc.get_threshold() == USUAL
    block.__exit__(None, None, None)
    del y


def test_compiling_pauses_the_collector_and_restores_it_after_an_error_too():
    seen = Seen()

    def fails(x):
        tape.gradient(long, 1.3)  # its end leaves the pause of the compilation
        seen.append((gc.get_threshold()[0], gc.isenabled()))
        raise ZeroDivisionError

    tape.compile(seen.at_end_of(lambda x: x * x), 1.3)
    assert gc.get_threshold() == USUAL
    with pytest.raises(ZeroDivisionError):
        tape.compile(fails, 1.3)
    assert seen[:2] == 2 * [(PATIENCE, True)]  # the eager engine then raises the error again
    assert gc.get_threshold() == USUAL
    gc.disable()
    tape.compile(seen.at_end_of(lambda x: x + x), 1.3)
    assert seen[-1] == (700, False)


def test_a_collection_while_a_new_thread_makes_its_levels_raises_nothing(monkeypatch):
    seen, made = [], levels.next_level

    def collecting():
        gc.collect()
        return made()

    monkeypatch.setattr(sys, "unraisablehook", seen.append)
    monkeypatch.setattr(levels, "next_level", collecting)
    thread = threading.Thread(target=lambda: levels.current.tapes)
    thread.start()
    thread.join()
    assert not seen
