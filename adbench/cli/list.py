"""`adbench list`: the cases or the backends."""

from __future__ import annotations

import click

from adbench.cli.support.console import colour, print_json, width
from adbench.cli.support.options import folder_options, json_option


@click.command("list")
@click.argument("kind", type=click.Choice(["cases", "backends"]))
@folder_options
@json_option
@click.option("--long", "is_long", is_flag=True, help="Print everything about each, over several lines.")
@click.option("--markdown", is_flag=True, help="Print a Markdown table.")
@click.option("--suite", "suites", multiple=True, metavar="NAME", help="List only the cases of this suite.")
def list_(
    kind: str,
    as_json: bool,
    is_long: bool,
    markdown: bool,
    suites: tuple[str, ...],
    case_folders: tuple[str, ...],
    backend_folders: tuple[str, ...],
) -> None:
    """List the available cases or backends.

    \b
    adbench list cases
    adbench list cases --long                formulas, operators, tags and suites
    adbench list cases --suite gradbench
    adbench list backends --json
    """
    from adbench.catalog import inventory
    from adbench.catalog.selection import resolve
    from adbench.execution.planning.plan import in_suites
    from adbench.reports.text.inventory import listing
    from adbench.reports.text.inventory import markdown as markdown_of

    if suites and kind != "cases":
        raise click.UsageError(f"--suite selects cases, not {kind}; write: adbench list cases --suite {suites[0]}")
    found = resolve(case_folders=case_folders, backend_folders=backend_folders).catalog
    rows = inventory.rows(kind, found)
    if suites:
        chosen = in_suites(found, tuple(found.cases), suites)
        rows = [row for row in rows if row["name"] in chosen]
    if as_json:
        print_json(rows)
    elif markdown:
        click.echo(markdown_of(rows), nl=False)
    else:
        click.echo(listing(rows, width=width(), colour=colour(), is_long=is_long), nl=False)
