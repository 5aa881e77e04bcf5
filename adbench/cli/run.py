"""`adbench run`: check, then measure time and memory."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from adbench.cli.support.console import say
from adbench.cli.support.execute import (
    execute,
    make_session,
    print_plan,
    print_run,
    refuse_contradictions,
    report_inactive_inputs,
)
from adbench.cli.support.function_options import FunctionCommand, function_options, print_function, with_function
from adbench.cli.support.options import (
    COUNT,
    PATH,
    details_option,
    quantity,
    seconds_of,
    selection,
    selection_options,
    share_option,
    without_own_option,
    worker_options,
)


@click.command(cls=FunctionCommand, short_help="Check, then measure time and memory.")
@selection_options
@function_options
@click.option(
    "--operator",
    "operators",
    multiple=True,
    metavar="NAME",
    help="Measure this operator; default: those of each case. batch_gradient_N: the gradient at N points at once.",
)
@click.option(
    "--quick",
    is_flag=True,
    help="Take a first look in two minutes: six cases, six backends, three sizes, five launches.",
)
@click.option("--rigorous", is_flag=True, help="Take 20 launches, for results to publish.")
@click.option(
    "--launches",
    type=COUNT,
    metavar="N",
    help="Start exactly N fresh processes of each backend; default: at most 8.",
)
@click.option("--memory/--no-memory", default=True, help="Also measure memory, in separate processes.")
@click.option(
    "--instructions",
    is_flag=True,
    help="Also count instructions of a call by Valgrind; other programs do not change them.",
)
@click.option("--reference", metavar="NAME", help="Measure this backend twice, as the control; default: tape.")
@share_option("--margin", None, "Treat times that differ by less as equal; default: 2%, with --quick 5%.")
@click.option(
    "--budget",
    metavar="TIME",
    callback=quantity(seconds_of),
    help="Stop within this time, for example 10m; reports everything it leaves out.",
)
@click.option("--label", metavar="TEXT", help="Call the run this in reports, for example 'laptop, on battery'.")
@click.option("--plan", "plan_only", is_flag=True, help="Print the plan and the expected time, then stop.")
@click.option("-o", "--output", type=PATH, metavar="DIR", help="Write to DIR; default: results/<time>/.")
@click.option("--resume", type=PATH, metavar="DIR", help="Resume the interrupted run in DIR.")
@details_option
@without_own_option
@worker_options
@click.pass_context
def run(
    context: click.Context,
    /,
    output: Path | None,
    resume: Path | None,
    plan_only: bool,
    details: bool,
    without_own: bool,
    as_json: bool,
    on: str | None,
    allow_nothing: bool,
    **asked: Any,
) -> None:
    """Check derivatives, then measure time and memory; write run.json and report.html.

    Exit code 0: everything is correct. 1: a derivative is wrong. 4: a backend crashed, raised an error or timed out, or
    nothing was checked with a selected backend or of a selected case. 5, with --function: rounding hides an answer.
    130: Ctrl-C; --resume continues.

    \b
    adbench run --quick
    adbench run -c 'normal_*' -n 1000 -b jax -b autograd -o out
    adbench run --function mymodule:f --at 1.0 2.0
    adbench run --function mymodule:f --inputs mymodule:g -n 10 100
    adbench run --budget 10m
    adbench run --resume out
    """
    from adbench.execution import session as sessions
    from adbench.model.atomic_file import write_whole
    from adbench.optional import require
    from adbench.reports.html import page
    from adbench.reports.text import planned
    from adbench.results.store import PAGE, default_folder, write_run

    refuse_contradictions(context)
    if not plan_only:
        require("matplotlib", "the page of a run")  # before minutes of measuring
    everything, own = with_function(asked)
    session = sessions.resume(resume, on) if resume else make_session(everything, time=True)
    if not resume:
        report_inactive_inputs(session)
    if plan_only:
        print_plan(session, as_json)
        return
    folder = resume or output or default_folder()
    is_long = not (resume or session.settings.quick or any(asked[name] for name in ("cases", "suites", "function")))
    faster = "; for a first look in two minutes: adbench run --quick" if is_long else ""
    found, code = execute(
        session,
        None if resume else folder,
        on=on,
        first=planned.sentence(session) + faster,
        allow_nothing=allow_nothing,
    )
    data = write_run(folder, found)  # before the page: a fault in drawing must not lose the measurements
    write_whole(folder / PAGE, page.render(found))
    if own is not None:
        code = print_function(own, found, code, as_json, allow_nothing)
    if own is None or not as_json:
        if own is not None:
            click.echo()
        print_run(
            *(found, as_json, details),
            without_own=without_own,
            page=folder / PAGE,
            more=f"adbench report {shlex.quote(str(folder))} --details",
            cases=[name for name, source in session.catalog.case_sources.items() if source.builtin],
            chosen=selection(asked),
        )
    if as_json:
        click.echo(f"data: {data}\npage: {folder / PAGE}", err=True)
    if not session.is_complete:
        say(f"interrupted; to resume: adbench run --resume {folder}{f' --on {on}' if on else ''}")
    sys.exit(code)
