"""`adbench check`: are derivatives right?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from adbench.cli.support.execute import execute, make_session, print_plan, print_run, report_inactive_inputs
from adbench.cli.support.function_options import FunctionCommand, function_options, print_function, with_function
from adbench.cli.support.options import PATH, selection_options, worker_options


@click.command(cls=FunctionCommand)
@selection_options
@function_options
@click.option(
    *("--operator", "operators"),
    multiple=True,
    metavar="NAME",
    help="Default: all, and relations; of --function its value and gradient or Jacobian.",
)
@click.option(
    "--points",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="Seeds to check at; of --function the given point and others around it.",
)
@click.option("--junit", type=PATH, metavar="FILE", help="Write JUnit XML too.")
@click.option("--fail-fast", is_flag=True, help="Stop at the first that is wrong.")
@click.option("--plan", "plan_only", is_flag=True, help="Print what would be checked, and check nothing.")
@worker_options
def check(
    as_json: bool,
    junit: Path | None,
    fail_fast: bool,
    plan_only: bool,
    on: str | None,
    **asked: Any,
) -> None:
    """Check values and derivatives, without timing them.

    Exit code 1: something is wrong, or an input does nothing. With --function also 5: nothing is wrong, but rounding
    hides an answer.

    \b
    adbench check                      everything installed, at small sizes
    adbench check -b my_backend.py -c matrix_product -n 8 --points 5
    adbench check --function mymodule:f --at 1.0 2.0
    adbench check --function mymodule.py:loss --at '{"w": [1, 2]}' --arg n=3 --points 5
    """
    from adbench.catalog.discovery import report_module
    from adbench.model.atomic_file import write_whole

    everything, own = with_function(asked)
    session = make_session(everything, time=False, memory=False, quick=True)
    if plan_only:
        print_plan(session, as_json)
        return
    found, code = execute(session, None, on=on, fail_fast=fail_fast)
    # A function given on the command line may be flat at the point that was asked for.
    dead = report_inactive_inputs(session, "warning" if own else "dead input")
    if junit is not None:
        write_whole(junit, report_module("text.junit").render(found))
    if own is None:
        print_run(found, as_json)
        sys.exit(code or (1 if dead else 0))
    sys.exit(print_function(own, found, code, as_json))
