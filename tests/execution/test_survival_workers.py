"""Whatever a library does to its process: its cell reports it, the others continue, no process remains.

Each run goes through the command line, as a stranger's would.
"""

from pathlib import Path

import pytest

from adbench.model.record import Record, Status
from tests.support.survival import Run, arguments, misbehaving_at, rounds_of, run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # many processes: slow on a busy machine

TAKES = "more = []\nwhile True: more.append(bytearray(b'x' * 20_000_000))"
TIMEOUT = "12"  # seconds: long enough for an import on a busy machine

DIES: dict[str, tuple[str, str, Status, str]] = {
    # name: when, what, status, part of the reason
    "segfault": ("first call", "import ctypes; ctypes.string_at(0)", "crashed", "died of SIGSEGV"),
    "abort": ("prepare", "os.abort()", "crashed", "died of SIGABRT"),
    "leaves": ("first call", "os._exit(0)", "crashed", "exited with code 0"),
    "takes": (
        "first call",
        "more = []\nwhile True: more.append(bytearray(b'x' * 20_000_000))",
        "crashed",
        "--mem-limit",
    ),
    "closes": ("first call", "os.closerange(0, 100)", "crashed", "exited with code 0"),
    "shuts": ("first call", "line().shutdown(2)", "crashed", ""),
    # its children hold the socket open, so the end of file does not reveal its death
    "forks_and_dies": ("first call", "if os.fork(): os.abort()\ntime.sleep(600)", "crashed", "died of SIGABRT"),
}

HANGS: dict[str, tuple[str, str, Status, str]] = {
    "loops": (
        "first call",
        """
        import signal, threading
        for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.Signals)
        while True: pass
        """,
        "timed_out",
        "no answer within",
    ),
    "stops": ("prepare", "import signal; os.kill(os.getpid(), signal.SIGSTOP)", "timed_out", "no answer within"),
    "drips": (
        "first call",
        """
        there = line()
        there.sendall((10_000).to_bytes(8, "big"))
        while True: there.sendall(b" "); time.sleep(0.1)
        """,
        "timed_out",
        "no answer within",
    ),
}

LIES: dict[str, tuple[str, str, Status, str]] = {
    "babbles": (
        "first call",
        "line().sendall(b'it is as easy as that')",
        "crashed",
        "its socket to the parent is lost",
    ),
    "forges": (
        "first call",
        "text = b'{\"value\": {}}'; line().sendall(len(text).to_bytes(8, 'big') + text)",
        "crashed",
        "sent an answer to another request",
    ),
    "nests": (
        "first call",
        "text = b'[' * 200_000; line().sendall(len(text).to_bytes(8, 'big') + text)",
        "crashed",
        "its socket to the parent is lost",
    ),
    "names": ("prepare", "with phase(('a', 'pair')): pass", "failed", "its answer cannot be sent"),
}

RAISES: dict[str, tuple[str, str, Status, str]] = {
    "own": ("first call", "class Own(BaseException): pass\nraise Own('not an Exception')", "failed", "Own: not an"),
    "interrupts": ("prepare", "raise KeyboardInterrupt", "failed", "KeyboardInterrupt"),
    "exits": ("first call", "sys.exit(3)", "failed", "SystemExit: 3"),
    "mute": (
        "first call",
        "class Mute(Exception):\n    def __str__(self): raise RuntimeError\nraise Mute",
        "failed",
        "Mute: no readable message",
    ),
    "recurses": ("first call", "misbehave()", "failed", "RecursionError"),
    "talks": ("prepare", "raise ValueError('much ado\\n' * 1_000_000)", "failed", "ValueError: much ado"),
}

HARMLESS = {
    "prints": """
        for number in (1, 2):
            for _ in range(40):
                os.write(number, bytes(range(256)) * 4096)
                os.write(number, (13).to_bytes(8, "big") + b'{"value": {}}')
        while os.fstat(1).st_size > 2**24:  # unread output is truncated, or this never ends
            time.sleep(0.1)
        """,
    "forks": """
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(600)
            os._exit(0)
        """,
    "comes_back": "os.fork()",
    "moves": "os.chdir('/')",
    "clears": "import shutil; shutil.rmtree(os.getcwd())",
    "meddles": """
        import gc, json, locale, signal, threading
        json.dumps = json.loads = time.monotonic = time.perf_counter_ns = time.time = lambda *_, **__: "no"
        gc.disable = gc.enable = lambda: None
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for name in locale.locale_alias.values():
            if name.startswith("de_"):
                try: locale.setlocale(locale.LC_ALL, name)
                except locale.Error: pass
        np.set_printoptions(precision=1)
        threading.Thread(target=lambda: time.sleep(600)).start()
        sys.stdout = sys.stderr = None
        sys.path.clear()
        os.environ.clear()
        """,
}


def check(home: Path, name: str, ran: Run, expected: dict[str, tuple[str, str, Status, str]]) -> dict[str, Record]:
    """Checks of every run with misbehaving backends: their records, and no effect on others."""
    assert "Traceback" not in ran.err
    assert ran.process.returncode == 4, (name, ran.err[-2000:])
    found = ran.records()
    for backend, (_, _, status, reason) in expected.items():
        record = found[backend]
        assert record.status == status, (backend, record)
        assert reason in str(record.reason), (backend, record.reason)
        assert record.reason
        assert "\n" not in record.reason
        assert len(record.reason) < 1000
        before = [0] if "in launch 2" in record.reason else []
        assert [launch.number for launch in record.time.launches] == before if record.time else not before
        assert record.reproduce
    right(found["hand"])
    whole(ran)
    return found


def right(record: Record) -> None:
    """The record of a backend that is checked, timed and measured."""
    assert record.status == "ok", record
    assert record.time
    assert record.memory
    peaks = (record.memory.allocated_peak_bytes, record.memory.python_peak_bytes, record.memory.resident_peak_bytes)
    assert any(peak.value is not None for peak in peaks)


def whole(ran: Run) -> None:
    """The run's files can be read, nothing was measured twice, and no process remains."""
    assert ran.seen["left behind"] == []
    assert set(rounds_of(ran.folder).values()) == {1}
    assert '"kind": "end"' in ran.lines()[-1]
    page = ran.folder / "report.html"
    page.unlink()
    again = run(ran.folder, "report", str(ran.folder))
    assert again.process.returncode == 0, again.err
    assert page.stat().st_size > 1000


def gone_through(home: Path, backends: dict[str, tuple[str, str, Status, str]], *more: str) -> Run:
    """A run of these backends with a correct one."""
    texts = {name: misbehaving_at(when, what, home / f"{name}.note") for name, (when, what, _, _) in backends.items()}
    (home / "here").mkdir()
    asked = arguments(home, texts, "--timeout", TIMEOUT, *more)
    return run(home / "out", *asked, cwd=home / "here")


@pytest.mark.parametrize("kind", ["dies", "hangs", "lies", "raises"])
def test_a_backends_failure_is_in_its_record_and_affects_no_other(tmp_path: Path, kind: str) -> None:
    backends = {"dies": DIES, "hangs": HANGS, "lies": LIES, "raises": RAISES}[kind]
    ran = gone_through(tmp_path, backends, "--mem-limit", "500M", "--launches", "1")
    check(tmp_path, kind, ran, backends)


def test_harmless_behaviour_affects_no_result(tmp_path: Path) -> None:
    backends: dict[str, tuple[str, str, Status, str]] = {
        name: ("first call", statements, "ok", "") for name, statements in HARMLESS.items()
    }
    ran = gone_through(tmp_path, backends, "--launches", "1")
    for name, record in ran.records().items():
        assert record.status == "ok", (name, record)
        right(record)
    assert ran.process.returncode == 0, ran.err
    whole(ran)


TIMED: dict[str, tuple[str, str, Status, str]] = {
    "imports": ("import", "os.abort()", "crashed", "in launch 1: importing it: died of SIGABRT"),
    "warm_up": ("warm-up", "os._exit(5)", "crashed", "in launch 1: exited with code 5"),
    "round": ("round", "import ctypes; ctypes.string_at(0)", "crashed", "in launch 1: died of SIGSEGV"),
    "closes": ("round", "os.closerange(0, 100)", "crashed", "in launch 1: exited with code 0"),
    "raises": ("round", "raise KeyboardInterrupt('enough')", "failed", "in launch 1: KeyboardInterrupt: enough"),
    "hangs": ("round", "time.sleep(600)", "timed_out", "in launch 1: no answer within"),
    "later": ("second launch", "os.abort()", "crashed", "in launch 2: died of SIGABRT"),
    "later_import": ("second import", "raise RuntimeError('moody')", "failed", "in launch 2: importing it: "),
}


def test_a_cell_lost_during_timing_names_the_launch(tmp_path: Path) -> None:
    ran = gone_through(tmp_path, TIMED, "--launches", "2")
    found = check(tmp_path, "timed", ran, TIMED)
    hand = found["hand"]
    assert hand.time
    assert hand.control
    assert [launch.number for launch in hand.time.launches] == [launch.number for launch in hand.control.launches]
    assert [launch.number for launch in hand.time.launches] == [0, 1]


def test_a_cell_without_memory_figures_keeps_its_times_and_gives_the_reason(tmp_path: Path) -> None:
    """A failure under a memory tracker does not affect the derivative's verdict: the figure is missing."""
    backends: dict[str, tuple[str, str, Status, str]] = {
        "dies": ("memory", "os.abort()", "ok", "died of SIGABRT"),
        "raises": ("memory", "raise RuntimeError('too heavy')", "ok", "RuntimeError: too heavy"),
        "takes": ("memory", TAKES, "ok", "--mem-limit"),
    }
    ran = gone_through(tmp_path, backends, "--mem-limit", "500M", "--launches", "1")
    assert ran.process.returncode == 0, ran.err
    found = ran.records()
    right(found["hand"])
    for name, (_, _, status, reason) in backends.items():
        record = found[name]
        assert record.status == status
        assert record.time
        assert record.memory
        figures = (record.memory.python_peak_bytes, record.memory.resident_peak_bytes)
        for figure in figures:
            assert figure.value is None
            assert reason in str(figure.reason), figure
    whole(ran)


def test_a_gigantic_result_is_wrong_and_harmless(tmp_path: Path) -> None:
    many = misbehaving_at("import", "pass", tmp_path / "note").replace(
        "return (right(x),)", "return (np.ones(20_000_000),)"
    )
    ran = run(tmp_path / "out", *arguments(tmp_path, {"many": many}, "--launches", "1"))
    assert ran.process.returncode == 1, ran.err
    assert ran.records()["many"].status == "wrong"
    right(ran.records()["hand"])
    whole(ran)
