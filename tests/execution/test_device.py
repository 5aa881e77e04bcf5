"""Another device than the processor, by a fake one: waiting, copies, memory, and the reason where it is missing."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adbench.catalog.discovery import catalog
from adbench.catalog.source import Source
from adbench.execution.operators import on_device
from adbench.execution.phases.memory_phase import MemoryMethod
from adbench.execution.planning.plan import plan
from adbench.execution.planning.request import Request
from adbench.execution.session import prepare
from adbench.execution.workers.context import Context
from adbench.execution.workers.resident_worker import ResidentWorker
from adbench.execution.workers.supervisor import Supervisor
from adbench.execution.workers.worker import WorkerState, answer
from adbench.model.errors import BadFile, UsageError
from adbench.model.record import Job, Record, Run
from adbench.model.serialization import to_plain
from adbench.model.settings import Settings
from adbench.reports.html import page
from adbench.reports.text import terminal
from adbench.results.comparison_inputs import differences, machine_of
from adbench.results.store import read_run, write_run
from tests.execution import fake_device
from tests.reports import runs
from tests.support.files import CASE, RIGHT, write

FILE = Path(__file__).with_name("fake_device.py")
WORK, COPY = 0.002, 0.02


def answered(worker: WorkerState, **request: Any) -> Any:
    found = answer(worker, request)
    assert "value" in found, found
    return found["value"]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_DEVICE", f"{WORK} {COPY}")


def seconds_per_call(folder: Path, transfers: str) -> float:
    """Of the fake's gradient of softplus, as a launch measures it."""
    case = Source("cases", "softplus", str(write(folder, softplus=CASE) / "softplus.py"), builtin=False)
    source = Source("backends", "fake_device", str(FILE), builtin=False, devices=("cuda",))
    worker = WorkerState()
    loaded = answered(worker, do="load", source=to_plain(source), device="cuda", transfers=transfers)
    assert loaded["device"] == fake_device.NAME
    asked = {"case": to_plain(case), "size": 10, "seed": 0, "operator": "gradient"}
    made = answered(worker, do="prepare", rotate=True, **asked)
    assert made["summary"]["total"] == pytest.approx(made["summary"]["magnitude"])  # NaN is not
    found = answered(worker, do="epoch", calls=3)
    return float(found["ns"]) * 1e-9 / 3


def test_a_call_is_timed_until_its_result_is_there_without_the_copies(fake: None, tmp_path: Path) -> None:
    outside, inside = (seconds_per_call(tmp_path, transfers) for transfers in ("outside", "inside"))
    assert outside >= WORK
    assert inside >= WORK + 2 * COPY  # one argument, one result
    assert inside > 3 * outside


def test_the_peak_on_the_device_is_by_the_librarys_counter(fake: None, tmp_path: Path) -> None:
    source = Source("backends", "fake_device", str(FILE), builtin=False, devices=("cuda",))
    backend = on_device.loaded(source, "cuda", "outside")
    native = backend.native_inputs((np.ones(1000),))
    call = backend.prepare("gradient", lambda x: x, native, (0,))
    peak = on_device.peak(backend, lambda: call(*native), 1)
    assert peak.value == 1000 * fake_device.PEAK_BYTES
    without = on_device.peak(on_device.loaded(source, "cpu", "outside"), lambda: None, 1)
    assert without.value is None
    assert without.reason == "fake_device has no counter of the device's memory"


def test_a_device_that_nobody_has_and_copies_without_one_are_refused_in_one_line() -> None:
    known = catalog(backend_paths=[FILE])
    for asked, match in (
        ({"backends": ["tape"], "device": "cuda"}, "no selected backend runs on 'cuda'; --device takes cpu or cuda"),
        ({"device": "tpu"}, "no selected backend runs on 'tpu'"),
        ({"transfers": "inside"}, "--transfers inside needs a device; add --device cuda"),
    ):
        with pytest.raises(UsageError, match=match):
            plan(known, Request(cases=["hypot"], **asked))  # type: ignore[arg-type]


def test_runs_on_other_devices_or_with_other_copies_are_those_of_other_machines() -> None:
    plain = runs.run([runs.record()])
    there = {how: plain.settings | {"device": "cuda", "transfers": how} for how in ("outside", "inside")}
    outside, inside = (machine_of(replace(plain, settings=settings)) for settings in there.values())
    with_setting = machine_of(replace(plain, settings=plain.settings | {"device": "cpu", "transfers": "outside"}))
    assert machine_of(plain) == with_setting  # that of older files
    assert len({outside, inside, with_setting}) == 3
    facts = "processor p; threads 1"
    assert differences(facts, facts) == []
    assert differences(facts, f"{facts}; device cuda (A), transfers inside") == [
        "device: cpu → cuda (A), transfers inside"
    ]


def test_a_backends_file_must_return_a_device_that_can_wait(tmp_path: Path) -> None:
    text = f'{RIGHT}\n\nDEVICES = ("cuda",)\n'
    write(tmp_path, forgets=text, returns=f"{text}\ndef use_device(name):\n    return name\n")
    sources = catalog(backend_paths=[tmp_path]).backends
    assert sources["forgets"].devices == ("cuda",)
    with pytest.raises(BadFile, match="use_device is missing"):
        on_device.loaded(sources["forgets"], "cpu", "outside")
    with pytest.raises(BadFile, match=r"returned 'cuda'; return Device\(name, sync\)"):
        on_device.loaded(sources["returns"], "cuda", "outside")


def measured(folder: Path, **asked: Any) -> tuple[Run, dict[str, Record]]:
    write(folder / "cases", softplus=CASE)
    write(folder / "backends", processor=RIGHT)
    session = prepare(
        cases=[str(folder / "cases" / "softplus.py")],
        backends=[str(FILE), str(folder / "backends" / "processor.py")],
        sizes=["10"], operators=["gradient"], quick=True, launches=1, device="cuda", **asked,
    )  # fmt: skip
    for _ in session.events(folder):
        pass
    run = session.result()
    return run, {record.job.backend: record for record in run.records}


@pytest.mark.slow
def test_a_run_on_a_device_says_so_everywhere(fake: None, tmp_path: Path) -> None:
    run, records = measured(tmp_path, transfers="inside")
    write_run(tmp_path, run)
    assert read_run(tmp_path / "run.json") == run == read_run(tmp_path / "journal.jsonl")
    assert (run.settings["device"], run.settings["transfers"]) == ("cuda", "inside")
    record = records["fake_device"]
    assert (record.device, record.outcome.word) == (fake_device.NAME, "right")
    assert record.time is not None
    assert record.time.seconds_per_call >= WORK + 2 * COPY
    assert record.memory is not None
    assert record.memory.device_peak_bytes.value == 10 * fake_device.PEAK_BYTES
    assert records["processor"].outcome.word == "unsupported"
    assert records["processor"].reason == "processor does not run on cuda; use --device cpu"
    said = f"on cuda ({fake_device.NAME}); times include copies of arguments to it and of results from it"
    assert said in page.render(run)
    assert said in " ".join(terminal.table(run, width=100).split())
    elsewhere, _ = measured(tmp_path / "outside", memory=False)
    assert "times exclude copies" in page.render(elsewhere)
    assert any("transfers" in text for text in differences(machine_of(run), machine_of(elsewhere)))


@pytest.mark.slow
def test_a_counter_that_cannot_be_reset_sees_one_cell_only(tmp_path: Path) -> None:
    case = str(write(tmp_path, softplus=CASE) / "softplus.py")
    known = catalog(case_paths=[case], backend_paths=[FILE])
    with Supervisor() as supervisor:
        context = Context(supervisor, known, Settings(device="cuda", weighings=1))
        method = MemoryMethod(context, "device", ResidentWorker(context, "fake_device"))
        peaks = [method.measure(Job("softplus", size, "fake_device", "gradient")).value for size in (100, 10)]
    assert peaks == [100 * fake_device.PEAK_BYTES, 10 * fake_device.PEAK_BYTES]


def test_cells_of_a_device_that_is_not_there_are_skipped_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FAKE_DEVICE", "0 0 absent")
    _, records = measured(tmp_path, time=False)
    record = records["fake_device"]
    assert (record.status, record.reason) == ("skipped", "no CUDA device: the fake sees cpu only")
    assert record.outcome.exit_code == 0


def test_without_a_device_workers_see_no_gpu(tmp_path: Path) -> None:
    probe = (
        "import os\n"
        + RIGHT
        + "\nNOTE = os.environ['JAX_PLATFORMS'], os.environ['CUDA_VISIBLE_DEVICES']\nassert NOTE == ('cpu', '')\n"
    )
    source = Source("backends", "probe", str(write(tmp_path, probe=probe) / "probe.py"), builtin=False)
    catalogued = replace(catalog(), backends={"probe": source})
    with Supervisor() as supervisor:
        context = Context(supervisor, catalogued, Settings())
        with ResidentWorker(context, "probe", context.plain_start()) as worker:
            worker.open()
    on_cuda = Context(supervisor, catalogued, Settings(device="cuda")).environment()
    assert on_cuda["JAX_PLATFORMS"] == ""
    assert "CUDA_VISIBLE_DEVICES" not in on_cuda
