"""`adbench conform`: which operations of a library have wrong derivatives?"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import click

from adbench.cli.support.console import colour, say, width
from adbench.cli.support.options import (
    COUNT,
    PATH,
    SECONDS,
    SEED,
    device_option,
    json_option,
    name_option,
    scripts_option,
)

if TYPE_CHECKING:
    from adbench.catalog.selection import Selection


@click.command(short_help="Examine every operation of a library.")
@name_option(
    *("backends", "-b", "--backend", "backends"),
    multiple=True,
    required=True,
    says="Examine this library: a backend's name, a glob or a file. Repeat it for more.",
)
@click.option(
    "--operation",
    "operations",
    multiple=True,
    metavar="NAME",
    help="Examine this operation: a name or a glob. Repeat it for more; default: all.",
)
@click.option("--points", type=COUNT, metavar="N", help="Examine the first N points of each operation only.")
@click.option("--seconds", type=SECONDS, metavar="S", help="Begin no further operation after S seconds.")
@click.option("--float32", "single", is_flag=True, help="Compute in float32, if available, and judge accordingly.")
@click.option("--variants", is_flag=True, help="Examine the eager and the compiled form, and compare their digits.")
@scripts_option
@click.option("--every-input", is_flag=True, help="Examine functions of one number at all inputs of types of 16 bits.")
@click.option(
    *("--dtype", "types"),
    type=click.Choice(["bfloat16", "float16"]),
    multiple=True,
    help="With --every-input: this type; default: both.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Draw random points with this seed.")
@device_option
@click.option("-o", "--output", type=PATH, metavar="FILE", help="Write the page to FILE.")
@click.option("--save", type=PATH, metavar="FILE", help="Write the result to FILE as JSON, for --against.")
@click.option("--against", type=PATH, metavar="FILE", help="Report only faults that this result of --save lacks.")
@click.option(
    *("--continue", "earlier"),
    type=PATH,
    metavar="FILE",
    help="Examine only the operations that this unfinished result of --save lacks, and join both results.",
)
@click.option("--list", "listed", is_flag=True, help="List the operations and each library's own functions, and stop.")
@json_option
def conform(every_input: bool, listed: bool, **asked: Any) -> None:
    """Examine every operation of a library: value, gradient, J v, and H v by each composition of its modes.

    The points are random, special (zeros, ties, singular matrices, edges of the domain) and spread over the whole range
    of exponents. Results that underflow or overflow count as correct, and so do digits that the point does not hold.

    \b
    adbench conform -b torch -o torch.html
    adbench conform -b jax --operation gelu --operation 'log*'
    adbench conform -b torch --points 20 --seconds 120 --device cuda
    adbench conform -b torch --save baseline.json
    adbench conform -b torch --against baseline.json
    adbench conform -b torch --seconds 300 --save part.json
    adbench conform -b torch --seconds 300 --continue part.json --save part.json
    adbench conform -b jax --operation softplus --variants
    adbench conform -b torch -b jax --every-input --dtype bfloat16 -o every.html

    Ctrl-C ends the sweep; the operations that were finished are reported and written.

    Exit code 0: no fault. 1: at least one fault; with --against, at least one that the baseline lacks. 4: no derivative
    of one of the libraries was checked. 130: Ctrl-C.
    """
    from adbench.catalog.discovery import select
    from adbench.catalog.selection import installed, resolve
    from adbench.execution import interrupt
    from adbench.findings.every_input import input_sweep, sixteen_bits
    from adbench.findings.operations import OPERATIONS
    from adbench.findings.variants.forms import with_both_forms
    from adbench.model.atomic_file import refuse_file
    from adbench.reports.text import conform as shown

    names = {"points": "points", "seconds": "seconds", "single": "float32", "against": "against", "earlier": "continue"}
    unused = [option for name, option in (names | {"variants": "variants"}).items() if asked[name]]
    if every_input and unused:
        raise click.UsageError(f"--{unused[0]} has no meaning with --every-input; leave it out")
    if asked["types"] and not every_input:
        raise click.UsageError("--dtype needs --every-input")
    if asked["scripts"] is not None and not asked["variants"]:
        raise click.UsageError("--scripts needs --variants")
    backends = with_both_forms(asked["backends"]) if asked["variants"] else asked["backends"]
    chosen = resolve(backends=backends)
    libraries = select("backend", chosen.catalog.backends, chosen.backends)
    kind, known = ("function", sixteen_bits.functions()) if every_input else ("operation", OPERATIONS)
    wanted = select(kind, known, asked["operations"])
    if listed and every_input:
        click.echo("\n".join([*wanted, f"{len(wanted)} functions"]))
        return
    if listed:
        click.echo(shown.table([OPERATIONS[name] for name in wanted], libraries, width()), nl=False)
        return
    if every_input:
        input_sweep.refuse_others(libraries)
    installed(chosen)
    for file in filter(None, (asked["save"], asked["output"])):
        refuse_file(file)
    interrupt.listen()
    (_every_input if every_input else _operations)(chosen, libraries, wanted, asked)


def _operations(
    chosen: Selection, libraries: Sequence[str], wanted: Sequence[str], asked: Mapping[str, Any]
) -> NoReturn:
    """The sweep over points of operations; exits as the command does."""
    from adbench.findings.conform import conformance as sweep
    from adbench.model.atomic_file import write_whole
    from adbench.reports.html import conform as page
    from adbench.reports.text import conform as shown
    from adbench.reports.text.terminal import forms_table

    variants, against = asked["variants"], asked["against"]
    old = None if against is None else sweep.read(against)
    how = {"seed": asked["seed"], "single": asked["single"], "device": asked["device"]}
    before = None if asked["earlier"] is None else sweep.unfinished(asked["earlier"], libraries)
    if before is not None:
        wanted = tuple(name for name in wanted if name in before.missing)
        how = {"seed": before.seed, "single": before.precision == "float32", "device": before.device}
    show = shown.ConformProgress(len(wanted))
    found = sweep.conform(
        chosen, libraries, wanted, **how, most_points=asked["points"], seconds=asked["seconds"] or math.inf,
        variants=variants, scripts=asked["scripts"], told=show.told,
    )  # fmt: skip
    show.end()
    if before is not None:
        found = sweep.joined(before, found)
    faults = found.faults if old is None else sweep.new_faults(found, old)
    plain = sweep.as_plain(found)
    if asked["save"] is not None:
        write_whole(asked["save"], sweep.as_text(plain))
    if asked["output"] is not None:
        write_whole(asked["output"], page.render(found))
    if asked["as_json"]:
        forms = {"forms": [one.to_dict() for one in found.forms]} if variants else {}
        click.echo(sweep.as_text(plain | forms), nl=False)
    else:
        click.echo(shown.text(found, faults, width=width(), colour=colour(), against=against is not None), nl=False)
        if variants:
            click.echo("\n" + forms_table.text(found.forms, found.libraries, width=width(), colour=colour()), nl=False)
    for sentence in found.unjudged:
        say(sentence)
    sys.exit(found.interrupted or (1 if faults else 4 if found.unjudged else 0))


def _every_input(
    chosen: Selection, libraries: Sequence[str], wanted: Sequence[str], asked: Mapping[str, Any]
) -> NoReturn:
    """The sweep over all inputs of functions; exits as the command does."""
    from adbench.findings.conform.conformance import as_text
    from adbench.findings.every_input import input_sweep, sixteen_bits
    from adbench.model.atomic_file import write_whole
    from adbench.reports.html import input_page as page
    from adbench.reports.text.status_line import StatusLine
    from adbench.reports.text.terminal import input_table as shown

    kinds = tuple(dict.fromkeys(asked["types"])) or tuple(sixteen_bits.TYPES)
    line = StatusLine()
    result = input_sweep.sweep(
        chosen, libraries, wanted, kinds,
        told=lambda done, total, part: line.show(f"{done} of {total} parts: {part}"), device=asked["device"],
    )  # fmt: skip
    line.end()
    plain = as_text(result.as_plain())
    if asked["save"] is not None:
        write_whole(asked["save"], plain)
    if asked["output"] is not None:
        write_whole(asked["output"], page.render(result))
    click.echo(plain if asked["as_json"] else shown.text(result, width=width(), colour=colour()), nl=False)
    sys.exit(result.interrupted or (1 if result.faults else 0 if result.judged else 4))
