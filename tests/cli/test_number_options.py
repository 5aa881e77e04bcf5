"""Every number option of every command: NaN, infinities, negative and gigantic numbers are one line, exit code 2."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from adbench.cli import cli
from adbench.cli.support.options import COUNT, SECONDS, SEED
from adbench.model.errors import UsageError
from adbench.model.settings import MOST_THREADS
from adbench.python_run import run
from tests.support.command import adbench

NONSENSE = ("nan", "inf", "-inf", "-1", "0x", "1e300", "99999999999999999999999", "3000000s", "")


def number_options() -> Iterator[tuple[str, click.Option]]:
    """(command, option) of each option that is read as a number, by its type or as a quantity."""
    for name, command in cli.commands.items():
        for option in command.params:
            by_text = getattr(option.callback, "__qualname__", "").startswith("quantity.")
            by_type = isinstance(option.type, click.types.IntParamType | click.types.FloatParamType)
            if isinstance(option, click.Option) and (by_text or by_type) and not option.is_flag:
                yield name, option


@pytest.mark.parametrize("value", NONSENSE)
@pytest.mark.parametrize(
    ("command", "option"),
    [pytest.param(name, option, id=f"{name}{option.opts[0]}") for name, option in number_options()],
)
def test_nonsense_in_a_number_option_is_one_line(
    tmp_path: Path, command: str, option: click.Option, value: str
) -> None:
    done = adbench(tmp_path, command, f"{option.opts[0]}={value}")
    assert (done.code, done.out) == (2, "")
    assert option.opts[0] in done.err
    assert done.err.count("\n") == 1


def test_there_are_number_options_and_each_has_bounds() -> None:
    found = [(command, option) for command, option in number_options() if option.callback is None]
    assert {"check", "run", "conform", "fuzz", "minimise", "explain", "gradbench-tool"} <= {name for name, _ in found}
    for command, option in found:
        assert option.type in (COUNT, SECONDS, SEED) or getattr(option.type, "max", None) == MOST_THREADS, (
            command,
            option.name,
        )


@pytest.mark.parametrize("size", ["nan", "inf", "-1", "1e300", "9" * 5000])
@pytest.mark.parametrize(
    "asked", [["check", "-c", "hypot", "-b", "tape"], ["run", "-c", "hypot", "-b", "tape"], ["explain", "hypot"]]
)
def test_nonsense_as_a_size_is_one_line(tmp_path: Path, asked: list[str], size: str) -> None:
    done = adbench(tmp_path, *asked, f"--size={size}")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "size" in done.err


@pytest.mark.parametrize("timeout", [float("nan"), float("inf"), 1e300, 3e6, -1.0])
def test_python_refuses_the_same_durations(timeout: float) -> None:
    for name in ("timeout", "budget"):
        with pytest.raises(UsageError, match=f"{name} must be a number of seconds above 0"):
            run("hypot", "tape", progress=False, **{name: timeout})
