"""`adbench check`: are derivatives right?"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from adbench.cli.support.console import say
from adbench.cli.support.execute import execute, make_session, print_plan, print_run, report_inactive_inputs
from adbench.cli.support.function_options import (
    FunctionCommand,
    function_options,
    print_function,
    print_kernel,
    print_same_bits,
    print_variants,
    with_function,
    with_variants,
)
from adbench.cli.support.options import (
    COUNT,
    RESULT_FILES,
    details_option,
    result_options,
    scripts_option,
    selection,
    selection_options,
    worker_options,
)


@click.command(cls=FunctionCommand)
@selection_options
@function_options
@click.option(
    "--definition",
    metavar="MODULE:D",
    help="Judge --function, a kernel that adbench cannot translate, by this function, which computes the same. "
    "--inputs can make its arguments in any type, on any device; --device places them.",
)
@click.option(
    "--same-bits",
    "bits",
    is_flag=True,
    help="Repeat the gradient of --function in calls, new processes, 2 threads, smaller batches, with padding and in "
    "two halves; print the first entry whose bits differ.",
)
@click.option(
    "--variants",
    is_flag=True,
    help="Check the eager and the compiled form of each library (torch, jax, tape), say which is closer to the truth, "
    "and which operation is the first whose results differ.",
)
@scripts_option
@click.option(
    *("--output", "part"),
    metavar="PART",
    help="Check this part of a tuple or a dict that your function returns: its position or key. Default: every "
    "floating-point part.",
)
@click.option(
    *("--operator", "operators"),
    multiple=True,
    metavar="NAME",
    help="Check this operator, for example gradient. Default: all operators except batch_gradient, and relations "
    "between calls; with --function the value and the gradient or Jacobian.",
)
@click.option(
    "--points",
    type=COUNT,
    default=1,
    show_default=True,
    metavar="N",
    help="Check at N points. With --function: the given point, then others: mixed signs, zeros, negative numbers, ...",
)
@result_options
@click.option("--fail-fast", is_flag=True, help="Stop at the first wrong result.")
@click.option(
    "--strict-known",
    is_flag=True,
    help="Exit with code 1 if a known bug no longer occurs (‽), for maintainers of the list. Default: a note.",
)
@click.option("--plan", "plan_only", is_flag=True, help="Print the plan and stop.")
@details_option
@worker_options
def check(
    as_json: bool,
    fail_fast: bool,
    strict_known: bool,
    plan_only: bool,
    details: bool,
    on: str | None,
    allow_nothing: bool,
    definition: str | None,
    bits: bool,
    variants: bool,
    scripts: Path | None,
    **asked: Any,
) -> None:
    """Check values and derivatives, without timing them.

    Exit code 0: everything is correct. 1: a derivative is wrong, or a case's value does not depend on an input. 4: a
    backend crashed, raised an error or timed out, or nothing was checked with a selected backend or of a selected case.
    5, with --function: rounding hides an answer.

    \b
    adbench check                 all traps, every operator of the quick suite,
                                  and the gradient of the other cases
    adbench check --suite all     every operator of every case, at small sizes
    adbench check -b my_backend.py -c matrix_product -n 8 --points 5
    adbench check -b my_backend.py --junit check.xml --sarif check.sarif
    adbench check --function mymodule:f --at 1.0 2.0
    adbench check --function mymodule.py:loss --at '{"w": [1, 2]}' --arg n=3
    adbench check --function k:softmax --definition k:plain --inputs k:rows -n 64
    adbench check --function mymodule:f --at 1.0 2.0 --variants --scripts DIR
    adbench check --function mymodule:f --inputs mymodule:rows -n 64 --same-bits
    """
    if scripts is not None and not variants:
        raise click.UsageError("--scripts needs --variants")
    files = {form: asked.pop(form) for form in RESULT_FILES}
    if bits:
        sys.exit(print_same_bits(asked, as_json))
    if definition is not None:
        sys.exit(print_kernel(asked, definition, as_json))
    everything, own = with_function(asked)
    if variants:
        everything = with_variants(everything, named=bool(asked["backends"]))
    session = make_session(everything, time=False, memory=False, quick=True)
    if plan_only:
        print_plan(session, as_json)
        return
    if not any(asked[name] for name in ("cases", "backends", "suites", "sizes", "operators", "function")):
        from adbench.reports.text import planned

        faster = "for less: adbench check -b NAME, -c NAME or --suite quick"
        say(f"{planned.sentence(session)}; {faster}")
    needs = own is not None and not allow_nothing
    found, code = execute(session, None, on=on, fail_fast=fail_fast, allow_nothing=allow_nothing, needs_device=needs)
    # A function given on the command line may be flat at the given point.
    dead = report_inactive_inputs(session, "warning" if own else "dead input")
    for form, output in files.items():
        if output is not None:
            from adbench.cli.support.output_formats import write

            write(found, form, output)
    if variants:
        sys.exit(print_variants(session, found, own, code, scripts, as_json, allow_nothing))
    if own is None:
        more = f"adbench {shlex.join(sys.argv[1:])} --details"
        print_run(found, as_json, details, more=more, chosen=selection(asked))
        gone = strict_known and any(record.status == "surprise" for record in found.every_record)
        sys.exit(1 if gone and code in (0, 4) else code or (1 if dead else 0))
    sys.exit(print_function(own, found, code, as_json, allow_nothing))
