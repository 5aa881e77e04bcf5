"""Make a session from the options, execute it, and print its results."""

from __future__ import annotations

import sys
from contextlib import ExitStack, closing, redirect_stdout
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from adbench.cli.support.console import colour, print_json, say, width
from adbench.cli.support.options import given_options

if TYPE_CHECKING:
    from adbench.execution.session import Session
    from adbench.model.record import Run
    from adbench.reports.text.progress import Bar

LONG_SECONDS = 30.0  # of a check without a terminal, before it loads the modules that print its progress


def make_session(asked: dict[str, Any], **settings: Any) -> Session:
    """The session that the command line asks for; reports on stderr what the plan leaves out."""
    from adbench.execution.session import prepare

    with redirect_stdout(sys.stderr):  # the output of a user's function is not a result
        session = prepare(**asked, **settings)
    for text in session.plan.sentences:
        say(text)
    return session


def report_inactive_inputs(session: Session, word: str = "warning") -> bool:
    """Print the inactive inputs of the user's cases on stderr; returns whether there is one."""
    with redirect_stdout(sys.stderr):
        remarks = session.remarks
    for notice in remarks:
        say(f"{word if notice.inactive else 'warning'}: {notice.text}")
    return any(notice.inactive for notice in remarks)


def refuse_contradictions(context: click.Context) -> None:
    """Raises UsageError for options that do not go together."""
    given = given_options(context)
    if "--resume" in given and (
        others := sorted(set(given) - {"--resume", "--json", "--on", "--details", "--allow-nothing", "--without-own"})
    ):
        raise click.UsageError(f"--resume keeps the settings of the interrupted run; remove {', '.join(others)}")
    if {"--quick", "--rigorous"} <= set(given):
        raise click.UsageError("--quick and --rigorous contradict each other; give one of them")


def print_plan(session: Session, as_json: bool) -> None:
    """Print what would run, as a table or as JSON."""
    from adbench.reports.text import planned

    if as_json:
        print_json(planned.plain(session))
    else:
        click.echo(planned.table(session, width=width()), nl=False)


def execute(
    session: Session,
    folder: Path | None,
    *,
    on: str | None = None,
    first: str = "",
    fail_fast: bool = False,
    allow_nothing: bool = False,
    needs_device: bool = False,
) -> tuple[Run, int]:
    """Run the session under a progress bar, a short check only on a terminal; returns the run and the exit code.

    folder          of the journal
    on              the cluster whose hosts measure; None for this machine
    first           a line that is printed once the session has begun
    allow_nothing   whether a selected backend or case may be judged nowhere
    needs_device    raise UsageError if no library sees the run's device

    After an interruption by signal n: the finished part, and 128 + n; after the loss of the cluster, and 4. Reports on
    stderr how many cells are unchecked, and what was judged nowhere.
    """
    from adbench.execution import interrupt
    from adbench.execution.session import exit_code
    from adbench.execution.workers.resident_worker import no_device
    from adbench.model.errors import LostCluster

    interrupt.listen()
    code, begun = None, monotonic()
    with ExitStack() as stack:
        bar = stack.enter_context(_bar(session)) if session.settings.time or sys.stderr.isatty() else None
        try:
            with closing(session.events(folder, on)) as events:
                for event in events:
                    if bar is None and monotonic() - begun > LONG_SECONDS:
                        bar = stack.enter_context(_bar(session, begun))
                    if bar is not None:
                        if first:
                            bar.say(first)
                            first = ""
                        bar.show(event, session.forecast.remaining)
                    if fail_fast and any(record.outcome.exit_code == 1 for record in event.records):
                        break
        except interrupt.Interrupted as interrupted:
            code = interrupted.code
        except LostCluster as lost:
            say(str(lost))
            code = 4
    found = session.result()
    if found.interruption is not None:
        say(found.interruption)
    absent = {record.job.backend: record.reason or "" for record in found.records if record.status == "skipped"}
    if needs_device and absent and all(record.status in ("skipped", "unsupported") for record in found.records):
        raise no_device(absent)
    for text in found.unjudged:
        from adbench.reports.content.formatting import visible

        advice = "" if allow_nothing else "; --allow-nothing accepts this"
        say(f"{visible(text)}{advice}")  # a reason must not act on the terminal
    if allow_nothing:  # then it is no fault in any file either
        found = replace(found, unjudged=())
    return found, code or exit_code(found.every_record, found.unjudged)


def _bar(session: Session, started: float | None = None) -> Bar:
    from adbench.reports.text.progress import Bar

    return Bar(session.settings.left_out, started=started)


def print_run(found: Run, as_json: bool, details: bool = False, *, without_own: bool = False, **ending: Any) -> None:
    """Print the overview or the details, or the run as JSON.

    ending    the page, the command that prints the details, and the names of cases: the fields of terminal.Ending
    """
    from adbench.reports.text import terminal
    from adbench.results.store import dumps

    if as_json:
        click.echo(dumps(found), nl=False)
        return
    about = terminal.Ending(**ending) if ending else None
    how = {"details": details, "without_own": without_own}
    shown = terminal.table(found, width=width(), colour=colour(), ending=about, **how)
    click.echo(shown, nl=False)
