"""A user's SystemExit or KeyboardInterrupt is a failure of the user's code; Ctrl-C still ends the command."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import product, starmap
from pathlib import Path

import numpy as np
import pytest

import adbench as adbench_package
from adbench.model.errors import Interrupted, UsageError, UserExit, contained
from tests.support.command import adbench, adbench_in_a_process
from tests.support.files import CASE, misbehaving, write
from tests.support.marks import one_in

EXITS = ("raise SystemExit(0)", "raise KeyboardInterrupt")
FUNCTIONS = """
import numpy as np
def leaves(x):
    {statement}
def right(x):
    return np.sum(np.sin(x))
def inputs(n):
    {statement}
"""


@pytest.mark.parametrize("statement", EXITS)
@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["--function", "mine.py:leaves", "--at", "1"], "leaves raises "),
        (["--function", "mine.py:right", "--inputs", "mine.py:inputs"], "mine.py:inputs(10) raises "),
        (["--function", "leaving.py:f", "--at", "1"], "leaving.py cannot be imported: "),
        (["-c", "leaving.py", "-b", "tape"], "leaving.py: cannot be imported: "),
        (["-c", "inputs_leave.py", "-b", "tape"], "inputs_leave.py: inputs(1, rng) raises "),
        (["-c", "flops_leave.py", "-b", "tape"], "flops_leave.py: flops(1) raises "),
    ],
)
def test_an_exit_of_a_users_code_is_one_line_and_exit_code_2(
    tmp_path: Path, statement: str, asked: list[str], message: str
) -> None:
    leave = f"def leave(*_):\n    {statement}\n"
    write(
        tmp_path,
        mine=FUNCTIONS.format(statement=statement),
        leaving=f"{statement}\n",
        inputs_leave=leave + CASE.replace('lambda n, rng: {"x": rng.normal(size=n)}', "leave"),
        flops_leave=leave + CASE.replace("sizes=", "flops=leave, sizes="),
    )
    done = adbench(tmp_path, "check", *asked)
    kind = "KeyboardInterrupt" if "Keyboard" in statement else "SystemExit"
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert message + kind in done.err


@pytest.mark.parametrize(
    ("where", "statement"), one_in(3, starmap(pytest.param, product(["call", "prepare", "import"], EXITS)))
)
def test_an_exit_of_a_backend_is_a_failure_of_its_cells(tmp_path: Path, statement: str, where: str) -> None:
    write(tmp_path, softplus=CASE, leaves=misbehaving(statement, where=where))
    done = adbench(tmp_path, "check", "-c", "softplus.py", "-b", "leaves.py", "--operator", "gradient")
    assert done.code == 4
    assert "failed: leaves, softplus" in done.out
    assert "KeyboardInterrupt" in done.out or "SystemExit" in done.out


def test_an_exit_of_a_case_is_a_failure_of_its_cells(tmp_path: Path) -> None:
    write(tmp_path, leaves=CASE.replace("    return", "    raise SystemExit(0)\n    return"))
    done = adbench(tmp_path, "check", "-c", "leaves.py", "-b", "tape", "--operator", "gradient")
    assert (done.code, "the case itself fails on plain numpy: SystemExit: 0" in done.out) == (4, True)


def test_an_exit_where_no_command_expects_it_is_not_the_commands_own(tmp_path: Path) -> None:
    leave = "def leave(*_):\n    raise SystemExit(0)\n"
    write(tmp_path, leaves=leave + CASE.replace('lambda n, rng: {"x": rng.normal(size=n)}', "leave"))
    done = adbench(tmp_path, "explain", "leaves.py")
    assert (done.code, "line 2 raises SystemExit: 0; remove this exit" in done.err) == (2, True)
    write(tmp_path, bad=misbehaving("raise SystemExit(0)", where="import"))
    served = adbench_in_a_process(tmp_path, "gradbench-tool", "-b", "bad.py", stdin="")
    assert (served.code, served.err.count("\n")) == (2, 1)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_python_gets_a_usage_error(kind: type[BaseException]) -> None:
    def leaves(x: np.ndarray) -> float:
        raise kind(0)

    for use in (adbench_package.check, adbench_package.assert_gradients):
        with pytest.raises(UsageError, match=rf"^leaves raises {kind.__name__}: 0 \(test_user_exits.py, line \d+\)$"):
            use(leaves, np.array([1.0]))


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_an_exit_of_a_derivative_rule_is_told_as_every_exception_is(kind: type[BaseException]) -> None:
    jax = pytest.importorskip("jax")

    def told(error: BaseException) -> str:
        f = jax.custom_vjp(lambda x: x * x)

        def backward(x: object, g: object) -> tuple[object]:
            raise error

        f.defvjp(lambda x: (x * x, x), backward)
        with pytest.raises(UsageError) as caught:
            adbench_package.check(f, 2.0)
        return str(caught.value)

    assert told(kind("bad")) == told(ValueError("bad")).replace("ValueError", kind.__name__)


@pytest.mark.slow
def test_an_exit_does_not_end_a_test_run_silently(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(
        "import sys, adbench\n"
        "def leaves(x):\n    sys.exit(0)\n"
        "def interrupts(x):\n    raise KeyboardInterrupt\n"
        "def test_one(assert_gradients):\n    assert_gradients(leaves, 1.0)\n"
        "def test_two():\n    adbench.assert_gradients(interrupts, 1.0)\n"
        "def test_three():\n    pass\n"
    )
    asked = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 1
    assert "2 failed, 1 passed" in done.stdout
    assert "UsageError: leaves raises SystemExit: 0 (test_mine.py, line 3)" in done.stdout


def test_ctrl_c_within_a_users_code_stays_an_interruption() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a command in this process may have left its own
    try:
        with pytest.raises(Interrupted) as caught, contained():
            signal.raise_signal(signal.SIGINT)
        assert caught.value.code == 130
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    for error in (SystemExit(3), KeyboardInterrupt()):
        with pytest.raises(UserExit), contained():
            raise error


def test_another_handler_of_ctrl_c_is_kept_and_believed() -> None:
    def theirs(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, theirs)
    try:
        with pytest.raises(KeyboardInterrupt), contained():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_thread_gets_no_signal_so_its_keyboard_interrupt_is_the_codes() -> None:
    found: list[BaseException] = []

    def work() -> None:
        try:
            with contained():
                raise KeyboardInterrupt
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert isinstance(found[0], UserExit)


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A check that waits in the user's function, in this process."""
    (tmp_path / "mine.py").write_text(
        "import time\ndef f(x):\n    print('waiting', flush=True)\n    time.sleep(60)\n    return x\n"
    )
    asked = [sys.executable, "-m", "adbench", "check", "--function", "mine.py:f", "--at", "1"]
    with subprocess.Popen(asked, cwd=tmp_path, stderr=subprocess.PIPE, text=True, env={**os.environ}) as process:
        yield process
        process.kill()


def test_ctrl_c_while_a_users_function_runs_ends_the_command(waiting: subprocess.Popen[str]) -> None:
    assert waiting.stderr is not None
    assert waiting.stderr.readline() == "waiting\n"
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(30) == 130
    assert "raises KeyboardInterrupt" not in waiting.stderr.read()
