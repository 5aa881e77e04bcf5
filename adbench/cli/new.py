"""`adbench new`: a file to start from."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(short_help="Write a commented case or backend.")
@click.argument("kind", type=click.Choice(["case", "backend"]))
@click.argument("name")
def new(kind: str, name: str) -> None:
    """Write NAME.py into this folder: a commented case or backend that already works.

    \b
    adbench new case my_case
    adbench new backend my_library
    """
    from adbench.catalog.scaffolding import scaffold

    file, (first, *later) = scaffold(kind, name, Path())
    click.echo(f"Wrote {file}. Change it, then run it:\n\n    {first}\n\nNext:\n")
    for command in later:
        click.echo(f"    {command}")
