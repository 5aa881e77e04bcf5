"""The verbs that look at what there is and change nothing: list and doctor."""

from __future__ import annotations

import json

import click

from .options import adding_folders
from .screen import colour, width


@click.command("list")
@click.argument("kind", type=click.Choice(["cases", "backends"]))
@adding_folders
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.option("--markdown", is_flag=True, help="Cases as a page.")
def list_(
    kind: str, as_json: bool, markdown: bool, case_folders: tuple[str, ...], backend_folders: tuple[str, ...]
) -> None:
    """List the cases or the backends there are."""
    from adbench.suite import catalog, listing
    from adbench.suite.resolve import resolve

    rows = listing.rows(kind, resolve(case_folders=case_folders, backend_folders=backend_folders).catalog)
    if as_json:
        click.echo(json.dumps(rows, indent=1))
    elif markdown and kind == "cases":
        click.echo(catalog.report("case_pages").markdown(rows), nl=False)
    else:
        click.echo(catalog.report("listing").listing(rows, width=width(), colour=colour()))


@click.command()
@click.option("--memory", "with_memory", is_flag=True, help="Hold the memory methods to known amounts: half a minute.")
@click.option("--backends", "with_backends", is_flag=True, help="Each backend's version, or what installs it.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def doctor(with_memory: bool, with_backends: bool, as_json: bool) -> None:
    """Look at this machine: how well can one measure on it, and what is missing? Changes nothing."""
    from dataclasses import asdict

    from adbench.suite import catalog
    from adbench.suite.doctor import examine
    from adbench.suite.resolve import resolve

    if with_memory:
        click.echo("adbench: holding known amounts of memory, about half a minute", err=True)
    found = examine(with_memory=with_memory, catalog=resolve().catalog if with_backends else None)
    if as_json:
        click.echo(json.dumps(asdict(found), indent=1))
    else:
        click.echo(catalog.report("doctor").text(found, width=width(), colour=colour()))
