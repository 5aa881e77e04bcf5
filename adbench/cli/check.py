"""`adbench check`: are derivatives right?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from adbench.cli.support.execute import execute, make_session, print_plan, print_run, report_inactive_inputs
from adbench.cli.support.options import PATH, selection_options, worker_options


@click.command(context_settings={"ignore_unknown_options": True})  # --at -1.0 -2.0
@click.argument("more", nargs=-1, metavar="")
@selection_options
@click.option("--operator", "operators", multiple=True, metavar="NAME", help="Default: all, and relations.")
@click.option("--points", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="Seeds to check at.")
@click.option("--function", metavar="MODULE:F", help="Check a function of your own, on the tape unless -b says else.")
@click.option("--at", metavar="X ...", help="Where: one number for each argument, or a vector.")
@click.option("--junit", type=PATH, metavar="FILE", help="Write JUnit XML too.")
@click.option("--fail-fast", is_flag=True, help="Stop at the first that is wrong.")
@click.option("--plan", "plan_only", is_flag=True, help="Print what would be checked, and check nothing.")
@worker_options
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
    from adbench.catalog.ad_hoc import asking_for
    from adbench.catalog.discovery import report_module
    from adbench.model.atomic_file import write_whole

    with asking_for(function, at, more, asked) as everything:
        session = make_session(everything, time=False, memory=False, quick=True)
        if plan_only:
            print_plan(session, as_json)
            return
        found, code = execute(session, None, on=on, fail_fast=fail_fast)
        # A function given on the command line may be flat at the point that was asked for.
        dead = report_inactive_inputs(session, "warning" if function else "dead input")
    if junit is not None:
        write_whole(junit, report_module("text.junit").render(found))
    print_run(found, as_json)
    sys.exit(code or (1 if dead and not function else 0))
