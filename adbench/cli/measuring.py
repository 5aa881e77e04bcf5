"""The verbs that start workers: check and run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from .going import go, make_session, refuse_contradictions, say_what_is_dead, show, show_plan
from .options import quantity, running, selecting, share


@click.command(context_settings={"ignore_unknown_options": True})  # --at -1.0 -2.0
@click.argument("more", nargs=-1, metavar="")
@selecting
@click.option("--operator", "operators", multiple=True, metavar="NAME", help="Default: all, and relations.")
@click.option("--points", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="Seeds to check at.")
@click.option("--function", metavar="MODULE:F", help="Check a function of your own, on the tape unless -b says else.")
@click.option("--at", metavar="X ...", help="Where: one number for each argument, or a vector.")
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE", help="Write JUnit XML too.")
@click.option("--fail-fast", is_flag=True, help="Stop at the first that is wrong.")
@click.option("--plan", "plan_only", is_flag=True, help="Print what would be checked, and check nothing.")
@running
def check(
    as_json: bool,
    junit: Path | None,
    fail_fast: bool,
    plan_only: bool,
    function: str | None,
    at: str | None,
    more: tuple[str, ...],
    on: str | None,
    **asked: Any,
) -> None:
    """Check values and derivatives, without timing them. Exit code 1 where one is wrong, or an input does nothing.

    \b
    adbench check                      everything installed, at small sizes
    adbench check -b my_backend.py -c matrix_product -n 8 --points 5
    adbench check --function mymodule:f --at 1.0 2.0
    """
    from adbench.suite import catalog
    from adbench.suite.own_function import asking_for
    from adbench.suite.store import write_whole

    with asking_for(function, at, more, asked) as everything:
        session = make_session(everything, time=False, memory=False, quick=True)
        if plan_only:
            show_plan(session, as_json)
            return
        found, code = go(session, None, on=on, fail_fast=fail_fast)
        # A function given on the command line may be flat at the point that was asked for.
        dead = say_what_is_dead(session, "warning" if function else "dead input")
    if junit is not None:
        write_whole(junit, catalog.report("junit").render(found))
    show(found, as_json)
    sys.exit(code or (1 if dead and not function else 0))


@click.command()
@selecting
@click.option("--operator", "operators", multiple=True, metavar="NAME", help="Default: each case's own.")
@click.option("--quick", is_flag=True, help="Fewer sizes, launches and epochs: a first look in under two minutes.")
@click.option("--rigorous", is_flag=True, help="20 launches: figures that others will hold you to.")
@click.option("--launches", type=click.IntRange(1), metavar="N", help="Fresh processes of each backend; default: 8.")
@click.option("--memory/--no-memory", default=True, help="Measure memory too, in processes of its own.")
@click.option("--reference", metavar="NAME", help="The backend that is measured twice, as the control; default: tape.")
@share("--margin", "2%", "Times that differ by less count as equal.")
@click.option(
    "--budget", metavar="TIME", callback=quantity("seconds_of"), help="Plan to fit, as 10m; says what it leaves out."
)
@click.option("--plan", "plan_only", is_flag=True, help="Print what would run and about how long, and run nothing.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="DIR", help="Default: results/<time>/.")
@click.option(
    "--resume", type=click.Path(path_type=Path), metavar="DIR", help="Go on with the interrupted run in this folder."
)
@running
@click.pass_context
def run(
    context: click.Context,
    /,
    output: Path | None,
    resume: Path | None,
    plan_only: bool,
    as_json: bool,
    on: str | None,
    **asked: Any,
) -> None:
    """Check, then measure time and memory; write run.json and report.html.

    \b
    adbench run --quick
    adbench run -c 'normal_*' -n 1000 -b jax -b autograd -o out
    adbench run --budget 10m
    adbench run --resume out
    """
    from adbench.suite import catalog
    from adbench.suite import session as sessions
    from adbench.suite.store import PAGE, default_folder, write_run, write_whole

    refuse_contradictions(context)
    session = sessions.resume(resume, on) if resume else make_session(asked, time=True)
    if not resume:
        say_what_is_dead(session)
    if plan_only:
        show_plan(session, as_json)
        return
    folder = resume or output or default_folder()
    found, code = go(session, None if resume else folder, on=on, first=catalog.report("planned").sentence(session))
    data = write_run(folder, found)  # before the page: a fault in drawing it must not cost what was measured
    write_whole(folder / PAGE, catalog.report("html").render(found))
    show(found, as_json)
    click.echo(f"data: {data}\npage: {folder / PAGE}", err=as_json)
    if code > 128:
        click.echo(
            f"adbench: interrupted; to go on: adbench run --resume {folder}{f' --on {on}' if on else ''}", err=True
        )
    sys.exit(code)
