"""Workers that use a processor outside their turns are named and paused, and nobody else is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import sleep

import psutil
import pytest

from adbench.catalog.source import Source
from adbench.execution.workers import background
from adbench.execution.workers.background import Background, in_words
from adbench.execution.workers.process import WorkerProcess, WorkerStart
from adbench.measure.machine import process_tree
from adbench.model.serialization import to_plain
from adbench.reports.content.cells import Cells
from adbench.reports.content.headline import headline
from tests.reports import runs
from tests.support.files import RIGHT, misbehaving

BUSY = """
import threading
def spin():
    while True: pass
threading.Thread(target=spin, daemon=True).start()
"""


class Worker:
    """A resident worker without a run: its process has imported a backend."""

    def __init__(self, name: str, process: WorkerProcess) -> None:
        self.name, self.process, self.paused = name, process, 0

    @property
    def pids(self) -> list[int]:
        return self.process.every_pid

    def cpu_ns(self) -> int:
        return sum(process_tree.cpu_ns(self.pids).values())

    def pause(self) -> None:
        self.paused += 1
        self.process.signal(19)

    def resume(self) -> None:
        self.process.signal(18)


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[tuple[Worker, Worker]]:
    with WorkerProcess(WorkerStart()) as busy, WorkerProcess(WorkerStart()) as calm:
        for process, text in ((busy, misbehaving(BUSY, where="import")), (calm, RIGHT)):
            file = tmp_path / f"b{process.pid}.py"
            file.write_text(text)
            process.ask({"do": "load", "source": to_plain(Source("backends", "b", str(file), builtin=False))}, 60)
        yield Worker("busy", busy), Worker("calm", calm)


def is_stopped(worker: Worker) -> bool:
    """Whether its process is stopped, or soon will be: a processor that runs it hears of the signal first."""
    (process,) = psutil.Process(worker.process.pid).children()
    for _ in range(200):
        if process.status() == psutil.STATUS_STOPPED:
            return True
        sleep(0.01)
    return False


def test_a_busy_worker_is_named_and_paused_in_the_turns_of_others(workers: tuple[Worker, Worker]) -> None:
    busy, calm = workers
    watch = Background(workers)  # type: ignore[arg-type]
    with watch.turn(calm) as meanwhile:  # type: ignore[arg-type]
        sleep(0.2)
    assert set(meanwhile) == {"busy"}
    assert "busy used" in str(in_words(meanwhile))
    assert set(watch.shares) == {busy}
    assert is_stopped(busy)
    with watch.turn(busy) as meanwhile:  # type: ignore[arg-type]
        before = busy.cpu_ns()
        while busy.cpu_ns() < before + 5_000_000:
            sleep(0.01)
    assert meanwhile == {}
    assert is_stopped(busy)
    assert calm.paused == 0


def test_a_short_turn_pauses_nobody(workers: tuple[Worker, Worker], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "ENOUGH_NS", 10**12)
    watch = Background(workers)  # type: ignore[arg-type]
    with watch.turn(workers[1]) as meanwhile:  # type: ignore[arg-type]
        sleep(0.3)  # on a machine under load, the busy one waits
    assert set(meanwhile) == {"busy"}
    assert watch.shares == {}


def test_a_process_found_during_a_turn_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have worked for an hour in its worker's own turns."""

    class Grows:
        name = "grows"
        pids = (1,)

        def resume(self) -> None: ...

    monkeypatch.setattr(background, "cpu_ns", lambda pids: dict.fromkeys(pids, 0) | ({2: 10**12} if 2 in pids else {}))
    grows, other = Grows(), Grows()
    watch = Background([grows, other])  # type: ignore[list-item]
    with watch.turn(other) as meanwhile:  # type: ignore[arg-type]
        grows.pids = (1, 2)
    assert meanwhile == {}


def test_the_report_names_who_was_paused() -> None:
    record = runs.record("c", 1, "busy")
    assert record.time is not None
    whole = replace(record, time=replace(record.time, launches=(replace(record.time.launches[0], background=0.97),)))
    assert headline(Cells(runs.run([whole]))).background == (
        "busy (97\u00a0%) used a processor outside its turns, and was paused there"
    )
    assert headline(Cells(runs.run([record]))).background is None
