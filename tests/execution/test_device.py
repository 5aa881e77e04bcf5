"""Another device than the processor, by a fake one: waiting, copies, memory, and the reason where it is missing."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pytest

from adbench.catalog.discovery import catalog
from adbench.catalog.source import Source
from adbench.execution.operators import on_device
from adbench.execution.phases.memory_phase import Measurement
from adbench.execution.planning.plan import plan
from adbench.execution.planning.request import Request
from adbench.execution.scheduler import Scheduler
from adbench.execution.session import prepare
from adbench.execution.workers.context import Context
from adbench.execution.workers.resident_worker import ResidentWorker
from adbench.execution.workers.supervisor import Supervisor
from adbench.execution.workers.worker import WorkerState, answer
from adbench.model.errors import BadFile, UsageError
from adbench.model.record import Job, Record, Round, Run, Time, grouped
from adbench.model.run_progress import Head, Progress
from adbench.model.serialization import to_plain
from adbench.model.settings import Settings
from adbench.reports.content.cells import Cells
from adbench.reports.content.footnotes import Footnotes
from adbench.reports.content.formatting import count
from adbench.reports.content.headline import wins_of_devices
from adbench.reports.content.sections import device_rows, launch_sizes, table
from adbench.reports.figures import looks, panels
from adbench.reports.html import page
from adbench.reports.text import terminal
from adbench.results.analysis import ratios
from adbench.results.comparison_inputs import differences, machine_of, of_run
from adbench.results.store import read_run, write_run
from tests.execution import fake_device
from tests.reports import runs
from tests.support.files import CASE, RIGHT, write

FILE = Path(__file__).with_name("fake_device.py")
WORK, COPY, LAUNCH = 0.002, 0.02, 0.02


def answered(worker: WorkerState, **request: Any) -> Any:
    found = answer(worker, request)
    assert "value" in found, found
    return found["value"]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_PLATFORMS", "")  # or it would be hidden in this process
    monkeypatch.setenv("FAKE_DEVICE", f"launch={WORK} copy={COPY}")


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
    assert fake_device.COMPILE_BYTES > fake_device.PEAK_BYTES  # a peak that is no part of the call's
    peak = on_device.peak(backend, lambda: call(*native), 1)
    assert peak.value == 1000 * fake_device.PEAK_BYTES
    without = on_device.peak(on_device.loaded(source, "cpu", "outside"), lambda: None, 1)
    assert without.value is None
    assert without.reason == "fake_device has no counter of the device's memory"


def test_a_device_that_nobody_has_and_copies_without_one_are_refused_in_one_line() -> None:
    known = catalog(backend_paths=[FILE])
    for asked, match in (
        ({"backends": ["tape"], "device": "cuda"}, "no selected backend runs on 'cuda'; --device takes cpu or cuda"),
        ({"backends": ["tape"], "device": "cpu,cuda"}, "runs on 'cuda'; --device takes cpu or cuda, or several"),
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
        **{"sizes": ["10"], "operators": ["gradient"], "quick": True, "launches": 1, "device": "cuda"} | asked,
    )
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
    record = records["fake_device (cuda)"]
    assert (record.device, record.outcome.word) == (fake_device.NAME, "right")
    assert record.time is not None
    assert record.time.seconds_per_call >= WORK + 2 * COPY
    assert record.memory is not None
    assert record.memory.device_peak_bytes.value == 10 * fake_device.PEAK_BYTES
    assert record.memory.python_peak_bytes.value is None
    assert record.memory.python_peak_bytes.reason == "its memory is on the device"
    assert records["processor (cuda)"].outcome.word == "unsupported"
    assert records["processor (cuda)"].reason == "processor does not run on cuda; use --device cpu"
    assert f"{10 * int(fake_device.PEAK_BYTES)} B" in terminal.table(run, width=100)  # of the device, not of Python
    said = f"on cuda ({fake_device.NAME}); times include copies of arguments to it and of results from it"
    assert said in page.render(run)
    assert said in " ".join(terminal.table(run, width=100).split())
    elsewhere, _ = measured(tmp_path / "outside", memory=False)
    assert "times exclude copies" in page.render(elsewhere)
    assert any("transfers" in text for text in differences(machine_of(run), machine_of(elsewhere)))


@pytest.mark.slow
def test_one_process_measures_the_peaks_of_all_cells_by_a_counter_that_cannot_be_reset(tmp_path: Path) -> None:
    case = str(write(tmp_path, softplus=CASE) / "softplus.py")
    known = catalog(case_paths=[case], backend_paths=[FILE])
    with Supervisor() as supervisor:
        context = Context(supervisor, known, Settings(device="cuda", weighings=1))
        request = {"do": "memory", "method": "device", "times": 1}
        method = Measurement(context, ResidentWorker(context, "fake_device (cuda)"), request)
        jobs = [Job("softplus", size, "fake_device (cuda)", "gradient") for size in (100, 10)]
        found = [(method.measure(job).value, method.worker.open()) for job in jobs]
    peaks, processes = zip(*found, strict=True)
    assert len(set(processes)) == 1
    assert list(peaks) == [100 * fake_device.PEAK_BYTES, 10 * fake_device.PEAK_BYTES]


DRIVER = """
int cuInit(unsigned flags) { return 0; }
int cuDeviceGet(int *device, int number) { *device = 7; return 0; }
int cuDeviceGetAttribute(int *value, int which, int device) { *value = which == 87 && device == 7 ? 64 : 1; return 0; }
"""
"""Of a device that computes in float32 64 times as fast as in float64."""


def test_a_device_built_for_float32_is_measured_in_it_unless_the_user_says_otherwise(tmp_path: Path) -> None:
    (tmp_path / "driver.c").write_text(DRIVER)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "libcuda.so.1", "driver.c"], cwd=tmp_path, check=True)
    text = f"""
from adbench.execution.session import prepare
asked = {{"cases": ["hypot"], "backends": [{str(FILE)!r}]}}
for more in ({{}}, {{"dtype": "float64"}}, {{"time": False}}, {{"device": "cpu"}}):
    session = prepare(**{{**asked, "device": "cuda", **more}})
    print(session.settings.dtype, *session.plan.left_out)
"""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    shown = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True)
    first, *others = shown.stdout.splitlines()
    assert first == "float32 float64, in which cuda is 64 times slower; --dtype float64 measures it"
    assert others == ["float64"] * 3


def test_cells_of_a_device_that_is_not_there_are_skipped_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FAKE_DEVICE", "absent")
    _, records = measured(tmp_path, time=False)
    record = records["fake_device (cuda)"]
    assert (record.status, record.reason) == ("skipped", "no CUDA device: the fake sees cpu only")
    assert record.outcome.exit_code == 0


def test_without_a_device_workers_see_no_gpu(tmp_path: Path) -> None:
    probe = (
        "import os\n"
        + RIGHT
        + "\nNOTE = os.environ['JAX_PLATFORMS'], os.environ['CUDA_VISIBLE_DEVICES']\nassert NOTE == ('cpu', '')\n"
    )
    source = Source("backends", "probe", str(write(tmp_path, probe=probe) / "probe.py"), builtin=False)
    catalogued = replace(catalog(), backends={"probe": source, "probe (cuda)": replace(source, device="cuda")})
    with Supervisor() as supervisor:
        context = Context(supervisor, catalogued, Settings())
        with ResidentWorker(context, "probe", context.plain_start()) as worker:
            worker.open()
    on_cuda = context.environment(backend="probe (cuda)")
    assert on_cuda["JAX_PLATFORMS"] == ""
    assert "CUDA_VISIBLE_DEVICES" not in on_cuda


def test_the_rates_of_a_device_are_those_of_a_worker_that_sees_it() -> None:
    """The fake has none where the variables of workers on the processor hide it."""
    catalogued, name = catalog(backend_paths=[FILE]), "fake_device (cuda)"
    head = Head(runs.run([]), ())
    with Supervisor() as supervisor:
        scheduler = Scheduler(Context(supervisor, catalogued, Settings(device="cuda")), Progress(head))
        (device, rates), *others = scheduler._rates([name]).items()
    assert (device, others) == ("cuda", [])
    assert rates.copy.per_second
    assert rates.arithmetic.per_second


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run on both devices: a call takes n times 0.1 ms on the processor, and 20 ms on the device."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAKE_DEVICE", f"launch={LAUNCH} number=1e-7 cpu=1e-4")
        folder = tmp_path_factory.mktemp("both")
        run, _ = measured(folder, device="cpu,cuda", sizes=["10", "20", "1000", "2000"], launches=4)
        write_run(folder, run)
        assert read_run(folder / "run.json") == run == read_run(folder / "journal.jsonl")
    return run


@pytest.mark.slow
@pytest.mark.xdist_group("two devices")
def test_a_run_on_two_devices_measures_both_in_turns_and_keeps_them_apart(both: Run) -> None:
    names = ["fake_device", "fake_device (cuda)", "processor"]  # no row of a backend that has no device
    assert list(both.versions) == names
    assert both.settings["device"] == "cpu,cuda"
    devices = {record.job.backend: record.device for record in both.records}
    assert devices == {"fake_device": None, "fake_device (cuda)": fake_device.NAME, "processor": None}
    assert {record.outcome.word for record in both.records} == {"right"}
    by_backend = grouped((record for record in both.records if record.job.size == 10), lambda r: r.job.backend)
    (here,), (there,) = (by_backend[name] for name in names[:2])
    assert here.time is not None
    assert there.time is not None
    assert here.time.seconds_per_call < LAUNCH <= there.time.seconds_per_call
    assert [launch.number for launch in here.time.launches] == [launch.number for launch in there.time.launches]
    assert "device cpu,cuda (Fake 9000)" in machine_of(both)
    (pair,) = [pair for pair in ratios(both) if (pair.b.size, pair.b.backend) == (10, "fake_device (cuda)")]
    assert pair.interval is not None  # rounds of one launch are paired, because they were measured in turns


@pytest.mark.slow
@pytest.mark.xdist_group("two devices")
def test_the_page_and_the_terminal_show_the_size_from_which_the_device_wins(both: Run) -> None:
    wins = f"fake_device on softplus: cuda is faster from n = {count(1000)}"
    assert wins_of_devices(Cells(both)) == [wins]
    assert wins in page.render(both)
    printed = " ".join(terminal.table(both, width=100).split())
    assert " ".join(wins.split()) in printed
    assert "Computed on cpu and cuda (Fake 9000)" in printed
    few = [record for record in both.records if record.job.size < 1000]
    assert wins_of_devices(Cells(replace(both, records=tuple(few)))) == [
        "fake_device on softplus: cuda is slower, up to n = 20"
    ]
    more = [record for record in both.records if record.job.size > 20]
    assert wins_of_devices(Cells(replace(both, records=tuple(more)))) == [
        f"fake_device on softplus: cuda is faster from n = {count(1000)}, at every measured size"
    ]


@pytest.mark.slow
@pytest.mark.xdist_group("two devices")
def test_memory_next_to_times_is_that_of_the_device_which_computed(both: Run) -> None:
    cells = Cells(both)
    on_device, here = (cells.cell("softplus", 1000, name) for name in ("fake_device (cuda)", "processor"))
    title, shown = panels.shown_memory([on_device, here])
    assert title in ("device peak or allocated peak", "device peak or python-visible peak")
    assert shown(on_device) == 1000 * fake_device.PEAK_BYTES
    assert 0 < (shown(here) or 0) < 1000 * fake_device.PEAK_BYTES
    assert panels.shown_memory([on_device])[0] == "device peak"


@pytest.mark.slow
def test_a_check_on_two_devices_judges_both_in_another_type_too(tmp_path: Path) -> None:
    for dtype, of_processor in (("float64", "right"), ("float32", "unsupported")):
        run, records = measured(tmp_path / dtype, time=False, device="cpu,cuda", dtype=dtype)
        words = {name: record.outcome.word for name, record in records.items()}
        assert words == {"fake_device": "right", "fake_device (cuda)": "right", "processor": of_processor}
    assert run.options == {"--dtype": "float32", "--device": "cpu,cuda"}
    assert run.unjudged == (
        "nothing was checked with the backend processor: "
        "1 of 1 unsupported: processor does not compute in float32; it has float64",
    )


def test_each_device_of_a_selected_backend_must_be_judged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FAKE_DEVICE", "absent")
    run, _ = measured(tmp_path, time=False, device="cpu,cuda")
    assert run.unjudged == (
        "nothing was checked with the backend fake_device (cuda): 1 of 1 skipped: "
        "no CUDA device: the fake sees cpu only",
    )


def test_a_users_file_may_have_a_name_like_one_on_a_device(tmp_path: Path) -> None:
    copy = write(tmp_path, **{"mine (copy)": RIGHT}) / "mine (copy).py"
    session = prepare(cases=["hypot"], backends=[str(copy)], sizes=["1"], time=False, reference="mine (copy)")
    for _ in session.events():
        pass
    run = session.result()
    assert {record.job.backend for record in run.records} == {"mine (copy)"}
    assert [part.names for part in run.selected if part.kind == "backend"] == [("mine (copy)",)]


def test_a_backend_on_a_device_is_a_name_of_the_catalog(tmp_path: Path) -> None:
    write(tmp_path, **{"mine (1)": RIGHT})
    sources = catalog(backend_paths=[tmp_path]).backends
    assert sources["mine (1)"].device == sources["jax"].device == "cpu"
    placed = sources["jax_eager (cuda)"]
    assert (placed.name, placed.label, placed.device) == ("jax_eager", "jax_eager (cuda)", "cuda")
    assert "nothing (cuda)" not in sources
    assert "jax (cuda)" not in list(sources)
    assert looks.look("jax (cuda)").colour == looks.look("jax").colour
    assert looks.look("jax (cuda)") != looks.look("jax")


@pytest.mark.slow
def test_a_device_has_two_times_the_latency_and_the_throughput(both: Run) -> None:
    times = {(r.job.size, r.job.backend): r.time for r in both.records if r.time}
    for size, work in ((10, 1e-6), (2000, 2e-4)):  # seconds that do not overlap
        time = times[size, "fake_device (cuda)"]
        assert time.seconds_per_call >= LAUNCH + work
        assert time.throughput_seconds is not None
        assert work <= time.throughput_seconds < time.seconds_per_call / 2
        rounds = [round for launch in time.launches for round in launch.unwaited]
        assert len(rounds) == sum(len(launch.rounds) for launch in time.launches)
        assert rounds[1].calls > rounds[0].calls  # they grow until the launch of the first is a small part
    assert times[2000, "fake_device"].throughput_seconds is None


@pytest.mark.slow
def test_reports_say_where_a_small_size_measures_the_launch_of_kernels(both: Run) -> None:
    one = next(record for record in both.records if record.job.size == 2000 and record.device)
    assert one.time is not None
    larger = replace(one, job=replace(one.job, size=10**6), time=_worked(one.time))
    run = replace(both, records=(*both.records, larger))
    cells, name = Cells(run), "fake_device (cuda)"
    assert launch_sizes(cells, "softplus", name) == [10, 20, 1000, 2000]
    (group,) = table(device_rows, cells, Footnotes(cells))
    assert [(row.size, row.entries[2].text) for row in group.rows] == [
        *((size, "launch of kernels") for size in (10, 20, 1000, 2000)), (10**6, "work")
    ]  # fmt: skip
    assert "<td>launch of kernels" in page.render(run)
    printed = " ".join(terminal.table(run, width=100).split())
    assert "(n = 10, 20, 1 000 and 2 000: mostly the launch of kernels)" in printed
    assert "fake_device (cuda) on softplus at n = 1 000 000: 1.00 s, throughput 980 ms a call" in printed
    flat = [replace(record, time=replace(record.time, launches=tuple(  # launches that do not overlap with others
        replace(launch, unwaited=launch.rounds) for launch in record.time.launches
    ))) for record in both.records if record.device and record.time]  # fmt: skip
    assert launch_sizes(Cells(replace(both, records=tuple(flat))), "softplus", name) == [10, 20, 1000]


def _worked(time: Time) -> Time:
    """The launches of a call of a second, of which 20 ms overlap with other calls."""
    rounds = {"rounds": (Round(1, 1_000_000_000),), "unwaited": (Round(10, 9_800_000_000),)}
    return Time(tuple(replace(launch, **rounds) for launch in time.launches))


@pytest.mark.slow
def test_launches_on_a_device_share_programs_and_the_first_one_has_the_time_of_compiling(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FAKE_DEVICE", "launch=0.002 compile=0.3 start=0.2")
    monkeypatch.setenv("ADBENCH_CACHE", str(tmp_path / "cache"))
    run, records = measured(tmp_path, launches=3, device="cpu,cuda")
    time = records["fake_device (cuda)"].time
    assert time is not None
    assert [launch.reuses_programs for launch in time.launches] == [False, True, True]
    assert [launch.prepare_seconds > 0.3 for launch in time.launches] == [True, False, False]
    assert time.prepare_seconds > 0.3
    assert not any(launch.reuses_programs for launch in records["fake_device"].time.launches)  # type: ignore[union-attr]
    _, alone = measured(tmp_path / "alone", launches=2, memory=False)
    control = alone["fake_device (cuda)"].control
    assert control is not None
    assert [(launch.reuses_programs, launch.prepare_seconds > 0.3) for launch in control.launches] == [
        (True, False)
    ] * 2
    assert list(of_run(run, "run").samples[records["fake_device (cuda)"].job].prepare) == [0]


@pytest.mark.exhaustive
def test_the_plan_knows_what_a_device_takes_to_start_and_compile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FAKE_DEVICE", "launch=0.002 number=1e-6 compile=1 start=1")
    monkeypatch.setenv("ADBENCH_CACHE", str(tmp_path / "cache"))
    write(tmp_path / "cases", softplus=CASE)
    asked = {"cases": [str(tmp_path / "cases" / "softplus.py")], "backends": [str(FILE)], "sizes": ["10", "100"]}
    asked |= {"operators": ["gradient"], "quick": True, "launches": 3, "device": "cuda"}
    shares = []
    while len(shares) < 4 and not any(0.75 < share < 1.25 for share in shares[1:]):  # others use the machine too
        shutil.rmtree(tmp_path / "cache" / "programs", ignore_errors=True)  # as after a change of the library
        session = prepare(**asked)
        expected, begun = session.estimate().of(session.plan.jobs).total, monotonic()
        for _ in session.events():
            pass
        shares.append(expected / (monotonic() - begun))
    assert shares[0] < 0.75, "nothing is known of a device's first run"
    assert any(0.75 < share < 1.25 for share in shares[1:]), shares
