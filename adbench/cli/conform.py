"""`adbench conform`: which operations of a library have wrong derivatives?"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

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
def conform(
    backends: tuple[str, ...],
    operations: tuple[str, ...],
    points: int | None,
    seconds: float | None,
    single: bool,
    variants: bool,
    scripts: Path | None,
    every_input: bool,
    types: tuple[str, ...],
    seed: int,
    device: str,
    output: Path | None,
    save: Path | None,
    against: Path | None,
    earlier: Path | None,
    listed: bool,
    as_json: bool,
) -> None:
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
    if every_input:
        ignored = {"--points": points, "--seconds": seconds, "--float32": single, "--against": against}
        ignored |= {"--continue": earlier, "--variants": variants}
        _every_input(backends, operations, types, device, output, save, as_json, listed, ignored)
    if types:
        raise click.UsageError("--dtype needs --every-input")
    if scripts is not None and not variants:
        raise click.UsageError("--scripts needs --variants")
    from adbench.catalog.discovery import select
    from adbench.catalog.selection import installed, resolve
    from adbench.execution import interrupt
    from adbench.findings.conform import conformance as sweep
    from adbench.findings.operations import OPERATIONS
    from adbench.model.atomic_file import refuse_file, write_whole
    from adbench.reports.html import conform as page
    from adbench.reports.text import conform as shown

    if variants:
        from adbench.findings.variants.forms import with_both_forms

        backends = with_both_forms(backends)
    chosen = resolve(backends=backends)
    names = select("backend", chosen.catalog.backends, chosen.backends)
    wanted = select("operation", OPERATIONS, operations)
    if listed:
        click.echo(shown.table([OPERATIONS[name] for name in wanted], names, width()), nl=False)
        return
    installed(chosen)
    for file in filter(None, (save, output)):
        refuse_file(file)
    old = None if against is None else sweep.read(against)
    before = None if earlier is None else sweep.unfinished(earlier, names)
    if before is not None:
        wanted = tuple(name for name in wanted if name in before.missing)
        seed, single, device = before.seed, before.precision == "float32", before.device
    interrupt.listen()
    show = shown.ConformProgress(len(wanted))
    found = sweep.conform(
        chosen, names, wanted, seed=seed, device=device, most_points=points, single=single, seconds=seconds or math.inf,
        variants=variants, scripts=scripts, told=show.told,
    )  # fmt: skip
    show.end()
    if before is not None:
        found = sweep.joined(before, found)
    faults = found.faults if old is None else sweep.new_faults(found, old)
    plain = sweep.as_plain(found)
    if save is not None:
        write_whole(save, sweep.as_text(plain))
    if output is not None:
        write_whole(output, page.render(found))
    if as_json:
        click.echo(
            sweep.as_text(plain | ({"forms": [one.to_dict() for one in found.forms]} if variants else {})), nl=False
        )
    else:
        click.echo(shown.text(found, faults, width=width(), colour=colour(), against=against is not None), nl=False)
        if variants:
            from adbench.reports.text.terminal import forms_table

            click.echo("\n" + forms_table.text(found.forms, found.libraries, width=width(), colour=colour()), nl=False)
    for sentence in found.unjudged:
        say(sentence)
    sys.exit(found.interrupted or (1 if faults else 4 if found.unjudged else 0))


def _every_input(
    backends: tuple[str, ...],
    operations: tuple[str, ...],
    types: tuple[str, ...],
    device: str,
    output: Path | None,
    save: Path | None,
    as_json: bool,
    listed: bool,
    ignored: Mapping[str, object],
) -> NoReturn:
    """The sweep over all inputs; exits as the command does."""
    from adbench.catalog.discovery import select
    from adbench.catalog.selection import installed, resolve
    from adbench.execution import interrupt
    from adbench.findings.conform.conformance import as_text
    from adbench.findings.every_input import input_sweep, sixteen_bits
    from adbench.model.atomic_file import refuse_file, write_whole
    from adbench.reports.html import input_page as page
    from adbench.reports.text.status_line import StatusLine
    from adbench.reports.text.terminal import input_table as shown

    if unused := [name for name, value in ignored.items() if value]:
        raise click.UsageError(f"{unused[0]} has no meaning with --every-input; leave it out")
    names = select("function", sixteen_bits.functions(), operations)
    if listed:
        click.echo("\n".join([*names, f"{len(names)} functions"]))
        sys.exit(0)
    chosen = resolve(backends=backends)
    libraries = select("backend", chosen.catalog.backends, chosen.backends)
    input_sweep.refuse_others(libraries)
    installed(chosen)
    for file in filter(None, (save, output)):
        refuse_file(file)
    interrupt.listen()
    kinds = tuple(dict.fromkeys(types)) or tuple(sixteen_bits.TYPES)
    line = StatusLine()
    result = input_sweep.sweep(
        chosen, libraries, names, kinds,
        told=lambda done, total, part: line.show(f"{done} of {total} parts: {part}"), device=device,
    )  # fmt: skip
    line.end()
    plain = as_text(result.as_plain())
    if save is not None:
        write_whole(save, plain)
    if output is not None:
        write_whole(output, page.render(result))
    click.echo(plain if as_json else shown.text(result, width=width(), colour=colour()), nl=False)
    sys.exit(result.interrupted or (1 if result.faults else 0 if result.judged else 4))
