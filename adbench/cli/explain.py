"""`adbench explain`: the tape of a case."""

from __future__ import annotations

from pathlib import Path

import click

from adbench.cli.support.console import colour, print_json
from adbench.cli.support.options import PATH, completion_of, folder_options


@click.command()
@click.argument("case", metavar="CASE", shell_complete=completion_of("cases"))
@click.option("-n", "--size", metavar="N", help="Use this size of the case; default: its smallest.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Make the inputs with this seed.")
@click.option("--compiled", is_flag=True, help="Also show the compiled recording: guards and native code.")
@click.option("--html", type=PATH, metavar="FILE", help="Write a page with a drawing to FILE instead.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with every line.")
@folder_options
def explain(
    case: str,
    size: str | None,
    seed: int,
    compiled: bool,
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
    """
    from adbench.catalog.discovery import report_module, select
    from adbench.catalog.selection import resolve
    from adbench.execution.planning.plan import positive
    from adbench.model.atomic_file import write_whole

    if as_json and html is not None:
        raise click.UsageError("--json and --html contradict each other; give one of them")
    chosen = resolve(cases=(case,), case_folders=case_folders, backend_folders=backend_folders)
    names = select("case", chosen.catalog.cases, chosen.cases)
    if len(names) > 1:
        raise click.UsageError(f"{case} matches {len(names)} cases: {', '.join(names)}; name one of them")
    explaining = report_module("html.explain")
    number = None if size is None else positive(size)
    found = explaining.explained(chosen.catalog, names[0], number, seed=seed, compiled=compiled)
    if html is not None:
        write_whole(html, explaining.page(found))
        click.echo(f"page: {html}")
    elif as_json:
        print_json(explaining.plain(found))
    else:
        click.echo(explaining.text(found, colour=colour()))
