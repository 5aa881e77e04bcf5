"""`adbench explain`: the tape of a case."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from adbench.cli.support.console import colour, print_json, say, width
from adbench.cli.support.options import PATH, SEED, completion_of, folder_options

if TYPE_CHECKING:
    from adbench.model.case import Case


@click.command(short_help="Show the tape of a case.")
@click.argument("case", metavar="CASE", shell_complete=completion_of("cases"))
@click.option("-n", "--size", metavar="N", help="Use this size of the case; default: its smallest.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Make the inputs with this seed.")
@click.option("--compiled", is_flag=True, help="Also show the compiled recording: guards and native code.")
@click.option(
    "--digits",
    metavar="BACKEND",
    shell_complete=completion_of("backends"),
    help="Show the digits that each operation by this backend keeps instead: of value, gradient and H v.",
)
@click.option("--html", type=PATH, metavar="FILE", help="Write a page with a drawing to FILE instead.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with every line.")
@folder_options
def explain(
    case: str,
    size: str | None,
    seed: int,
    compiled: bool,
    digits: str | None,
    html: Path | None,
    as_json: bool,
    case_folders: tuple[str, ...],
    backend_folders: tuple[str, ...],
) -> None:
    """Show the tape of a case: expression graph, forward pass, reverse pass. CASE is a name or a file.

    \b
    adbench explain normal_log_density
    adbench explain hypot --html hypot.html
    adbench explain projectile --compiled
    adbench explain trap_sinc_near_zero --digits torch
    """
    from adbench.catalog.discovery import select
    from adbench.catalog.selection import resolve
    from adbench.execution.planning.plan import positive
    from adbench.model.atomic_file import write_whole
    from adbench.reports.html import explain as explaining

    if as_json and html is not None:
        raise click.UsageError("--json and --html contradict each other; give one of them")
    if digits is not None and (html is not None or compiled):
        raise click.UsageError(
            f"--digits and {'--compiled' if html is None else '--html'} contradict each other; give one"
        )
    chosen = resolve(cases=(case,), case_folders=case_folders, backend_folders=backend_folders)
    names = select("case", chosen.catalog.cases, chosen.cases)
    if len(names) > 1:
        raise click.UsageError(f"{case} matches {len(names)} cases: {', '.join(names)}; name one of them")
    number = None if size is None else positive(size)
    if digits is not None:
        _show_digits(chosen.catalog.cases[names[0]], number, seed, digits, as_json=as_json)
        return
    found = explaining.explained(chosen.catalog, names[0], number, seed=seed, compiled=compiled)
    if html is not None:
        write_whole(html, explaining.page(found))
        click.echo(f"page: {html}")
    elif as_json:
        print_json(explaining.plain(found))
    else:
        click.echo(explaining.text(found, colour=colour(), width=width()))


def _show_digits(case: Case, size: int | None, seed: int, backend: str, *, as_json: bool) -> None:
    """A line for each operation, as it is checked."""
    from adbench.catalog.selection import installed, resolve
    from adbench.execution.lost_digits import MODES, lost_digits

    installed(resolve(backends=(backend,)))
    number = case.sizes[0] if size is None else size
    if not case.accepts(number):
        raise click.UsageError(f"{case.name} has no size {number}; use {case.takes}")
    columns = ("value", *MODES)
    if not as_json:
        click.echo(f"Correct digits of each operation by {backend} at its own inputs /\ndigits that float64 can hold\n")
        click.echo(f"{'operation':<40}" + "".join(f"{name:>12}" for name in columns))
    found = []
    for one in lost_digits(case, number, seed, backend):
        found.append(one)
        if not as_json:
            name = f"{one.operation.name} = {one.operation.written}"
            line = "".join(f"{one.told(name):>12}" for name in columns)
            end = "  wrong" if one.is_wrong else f"  {one.reason}" if one.reason else ""
            click.echo(f"{name if len(name) < 40 else name[:38] + '…':<40}{line}{end}")
    if not any(one.worst for one in found):
        reason = found[0].reason if found else "the case has no operation"
        say(f"no operation was checked with {backend}: {reason}")
    if as_json:
        print_json([one.to_dict() for one in found])
    if not any(one.worst for one in found):
        sys.exit(4)
    if as_json:
        return
    wrong = [one.operation.name for one in found if one.is_wrong]
    click.echo(f"\nwrong by itself: {', '.join(wrong)}" if wrong else "\nno operation is wrong by itself")
