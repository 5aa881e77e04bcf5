"""`adbench doctor`: how well one can measure on this machine."""

from __future__ import annotations

import click

from adbench.cli.support.console import colour, print_json, width
from adbench.cli.support.options import json_option


@click.command(short_help="Inspect this machine: how precisely can it measure?")
@click.option("--memory", "with_memory", is_flag=True, help="Also test memory measurements on known amounts (30 s).")
@click.option("--backends", "with_backends", is_flag=True, help="Also list backends: version, or how to install it.")
@json_option
def doctor(with_memory: bool, with_backends: bool, as_json: bool) -> None:
    """Inspect this machine: how precisely can it measure, and what is missing? Changes nothing.

    \b
    adbench doctor
    adbench doctor --backends
    """
    from dataclasses import asdict

    from adbench.catalog.selection import resolve
    from adbench.doctor.examine import examine
    from adbench.reports.text.doctor import text

    if with_memory:
        click.echo("adbench: testing the memory measurements, about half a minute", err=True)
    found = examine(with_memory=with_memory, catalog=resolve().catalog if with_backends else None)
    if as_json:
        print_json(asdict(found))
    else:
        click.echo(text(found, width=width(), colour=colour()), nl=False)
