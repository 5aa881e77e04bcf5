"""`adbench history`: the runs in a folder."""

from __future__ import annotations

import json
from pathlib import Path

import click

from adbench.cli.support.console import width
from adbench.cli.support.options import PATH, json_option


@click.command()
@click.argument("folder", type=PATH, default=Path("results"))
@json_option
def history(folder: Path, as_json: bool) -> None:
    """List the runs in FOLDER and its subfolders, newest last. Default: results.

    \b
    adbench history
    adbench history results --json
    """
    from adbench.catalog.discovery import report_module
    from adbench.results.history import history as listed

    found = listed(folder)
    shown = report_module("text.history")
    click.echo(json.dumps(shown.data(found), indent=1) if as_json else shown.text(found, width()), nl=as_json)
