"""`adbench new`: a file to start from."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("kind", type=click.Choice(["case", "backend"]))
@click.argument("name")
def new(kind: str, name: str) -> None:
    """Write NAME.py here: a commented case or backend that works as it stands, for you to change.

    \b
    adbench new case my_case
    adbench new backend my_library
    """
    from adbench.catalog.scaffolding import scaffold

    new_file = scaffold(kind, name, Path())
    first, *later = new_file.commands
    click.echo(f"{new_file.file}: change it, and run it:\n\n    {first}\n\nand then:\n")
    for command in later:
        click.echo(f"    {command}")
