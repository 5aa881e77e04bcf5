"""The command `adbench`: from argv to the calls that do the work. Data goes to stdout, progress and errors to stderr.

Exit codes: 0 fine, 1 a wrong derivative or a dead input, 2 usage or unreadable input, 3 slower than before, 4 a backend
crashed, timed out or raised, or nothing was checked, 5 too noisy to decide, 128 + n interrupted by signal n (130 by
Ctrl-C).
Imports of the suite are inside the functions: `adbench --version` must answer at once.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import traceback
from collections import UserDict
from importlib import import_module
from typing import Any

import click

from adbench.model.errors import AdbenchError, UnknownName, UsageError, UserExit
from adbench.optional import MissingLibrary
from adbench.version import __version__

HELP = ("-h", "--help")

OUTPUT_FAILS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""Errors of a stream that is full or gone; those of a file have its name."""

NOT_FOR_US = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR)
"""Errors of a file of the user's, whichever command reads or writes it."""


def main() -> None:
    """Run the command line. A user's error is one line on stderr and exit code 2."""
    _start_in_utf8()
    if sys.stdout is None:  # closed by `>&-`
        click.echo("adbench: standard output is closed; redirect it to a file or to /dev/null", err=True)
        sys.exit(2)
    try:
        code = _run()
        sys.stdout.flush()
        sys.exit(code)
    except click.ClickException as error:
        text = error.format_message()  # without a command, it is the help
        click.echo(text if text.startswith("Usage:") else f"adbench: {text}{_advice(error)}", err=True)
        sys.exit(2)
    except (AdbenchError, MissingLibrary) as error:
        from adbench.reports.content.formatting import visible  # a name in it must not act on the terminal

        click.echo(f"adbench: {visible(' '.join(str(error).split()))}", err=True)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt) as interrupted:
        sys.exit(getattr(interrupted, "code", 130))
    except BrokenPipeError:  # `adbench list cases | head -1`
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        if error.filename is not None and error.errno in NOT_FOR_US:
            click.echo(
                f"adbench: {error.filename}: {error.strerror}; change its permissions, or give another", err=True
            )
            sys.exit(2)
        if error.filename is not None or error.errno not in OUTPUT_FAILS:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or the interpreter fails again at its end
        click.echo(f"adbench: cannot write to standard output: {error.strerror}; make room, or redirect it", err=True)
        sys.exit(2)


def _start_in_utf8() -> None:
    """Start again in UTF-8 mode if the locale, such as C, cannot decode the arguments or the working folder."""
    if sys.flags.utf8_mode or os.environ.get("PYTHONUTF8") == "1":
        return
    with contextlib.suppress(OSError):  # the folder was deleted
        if any("\ud800" <= letter <= "\udfff" for letter in "".join([*sys.orig_argv, os.getcwd()])):
            os.execve(sys.executable, sys.orig_argv, {**os.environ, "PYTHONUTF8": "1"})


def _run() -> Any:
    """The exit code. An exit that no command of ours raised is a UsageError, or a user's code would end with 0."""
    try:
        return cli.main(prog_name="adbench", standalone_mode=False)
    except (SystemExit, UserExit) as leaving:
        *_, (frame, line) = traceback.walk_tb(leaving.__traceback__)
        if isinstance(leaving, SystemExit) and frame.f_globals["__name__"].startswith(("adbench.", "click.")):
            return leaving.code
        what = f"{type(leaving).__name__}: {leaving}"
        raise UsageError(f"{frame.f_code.co_filename}, line {line} raises {what}; remove this exit") from leaving


def _advice(error: click.ClickException) -> str:
    """Where to look, after a message of click's, which reports what was wrong, but not what to do."""
    if isinstance(error, click.NoSuchOption | click.BadParameter) and error.ctx is not None:
        from adbench.cli.support.options import PROJECT_FILE, is_default

        parameter = error.param if isinstance(error, click.BadParameter) else None
        if parameter is not None and is_default(error.ctx, parameter):
            return f" It is the default in {PROJECT_FILE}; change it there."
        return f" See {error.ctx.command_path} --help."
    return ""


class Verbs(UserDict[str, Any]):
    """Name -> command, imported when it is looked up: a command does not wait for the modules of the others."""

    def __getitem__(self, name: str) -> click.Command:
        module, _, attribute = self.data[name].partition(":")
        command: click.Command = getattr(import_module(f"adbench.cli.{module}"), attribute)
        return command


VERBS = Verbs(
    {
        "atlas": "search.atlas:atlas",
        "audit": "search.audit:audit",
        "bisect": "search.bisect:bisect",
        "check": "check:check",
        "compare": "compare:compare",
        "conform": "conform:conform",
        "doctor": "doctor:doctor",
        "explain": "explain:explain",
        "fuzz": "search.fuzz:fuzz",
        "gradbench-tool": "gradbench_tool:gradbench_tool",
        "history": "stored.history:history",
        "list": "list:list_",
        "minimise": "search.minimise:minimise",
        "new": "new:new",
        "publish": "stored.publish:publish",
        "report": "report:report",
        "run": "run:run",
    }
)


class Commands(click.Group):
    """The commands of adbench; an unknown one gets a list of them."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first argument names. Raises UnknownName."""
        if not ctx.resilient_parsing and args[0] not in self.commands:
            raise UnknownName("command", args[0], self.commands)
        name, command, words = super().resolve_command(ctx, args)
        if name and command and not (ctx.resilient_parsing or ctx.params["no_defaults"] or {*HELP} & {*words}):
            from adbench.cli.support.options import defaults_of

            ctx.default_map = {name: defaults_of(command, name, self.commands, words)}
        return name, command, words


@click.group(cls=Commands, commands=VERBS, context_settings={"help_option_names": [*HELP], "max_content_width": 100})
@click.version_option(__version__, prog_name="adbench", message="%(prog)s %(version)s")
@click.option("--no-defaults", is_flag=True, help="Ignore the default options in pyproject.toml.")
def cli(no_defaults: bool) -> None:
    """Check and measure automatic differentiation libraries: correctness, time and memory.

    \b
    adbench run --quick                   check and measure; write a page
    adbench run -c 'normal_*' -b jax      choose cases and backends
    adbench check --function mymodule:f --at 1.0 2.0
                                          check the gradient of your function
    adbench check -b my_backend.py        only check derivatives, for CI
    adbench list cases                    also: adbench list backends
    adbench doctor                        is this machine fit for measuring?

    A case is a function to differentiate. A backend is a library that differentiates it. [tool.adbench.COMMAND] in
    pyproject.toml has default options.
    """
