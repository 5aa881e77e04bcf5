"""From options to a session, through it, and what is shown of it."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adbench.cli.support.console import colour, width

if TYPE_CHECKING:
    from adbench.execution.session import Session
    from adbench.model.record import Run


def make_session(asked: dict[str, Any], **settings: Any) -> Session:
    """What was asked for on the command line, planned; says on stderr what of it does not exist."""
    from adbench.execution.session import prepare

    session = prepare(**asked, **settings)
    for text in session.plan.left_out:
        click.echo(f"adbench: left out: {text}", err=True)
    return session


def say_what_is_dead(session: Session, word: str = "warning") -> bool:
    """On stderr, the inputs of the user's own cases that do nothing; whether there is one."""
    for remark in session.remarks:
        click.echo(f"adbench: {word if remark.dead else 'warning'}: {remark.text}", err=True)
    return any(remark.dead for remark in session.remarks)


def refuse_contradictions(context: click.Context) -> None:
    """Raises UsageError for options that do not go together."""
    from click.core import ParameterSource

    given = [
        option.opts[0]
        for option in context.command.params
        if option.name and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    ]
    if "--resume" in given and (others := sorted(set(given) - {"--resume", "--json", "--on"})):
        raise click.UsageError(f"--resume goes on as the run was begun; it does not go with {', '.join(others)}")
    if {"--quick", "--rigorous"} <= set(given):
        raise click.UsageError("--quick and --rigorous contradict each other; give one of them")


def show_plan(session: Session, as_json: bool) -> None:
    """Print what would run, as a table or as JSON."""
    from adbench.catalog.discovery import report_module

    planned = report_module("text.planned")
    if as_json:
        click.echo(json.dumps(planned.plain(session), indent=1))
    else:
        click.echo(planned.table(session, width=width()), nl=False)


def go(
    session: Session, folder: Path | None, *, on: str | None = None, first: str = "", fail_fast: bool = False
) -> tuple[Run, int]:
    """Run the session under a progress bar, its journal in the folder; `first` is said once it has begun.

    on   the cluster whose hosts measure; None for this machine

    Interrupted: what was finished, and 128 + n.
    """
    from adbench.catalog.discovery import report_module
    from adbench.execution import interrupt
    from adbench.execution.session import exit_code
    from adbench.model.events import Checked

    interrupt.listen()
    code = None
    with report_module("text.progress").Bar(session.settings.left_out) as bar:
        try:
            with closing(session.events(folder, on)) as events:
                for event in events:
                    if first:
                        bar.say(first)
                        first = ""
                    bar.show(event, session.forecast.remaining)
                    bad = isinstance(event, Checked) and event.record.status in ("wrong", "surprise")
                    if fail_fast and bad:
                        break
        except interrupt.Interrupted as interrupted:
            code = interrupted.code
    found = session.result()
    return found, code or exit_code(found.records)


def show(found: Run, as_json: bool) -> None:
    """Print the table, or the run as JSON."""
    from adbench.catalog.discovery import report_module
    from adbench.results.store import dumps

    if as_json:
        click.echo(dumps(found), nl=False)
    else:
        click.echo(report_module("text.terminal").table(found, width=width(), colour=colour()))
