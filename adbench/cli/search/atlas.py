"""`adbench atlas`: which release of a library has which fault?"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adbench.cli.support.console import colour, print_json, say, width
from adbench.cli.support.options import COUNT, PATH, environment_options, json_option, library_option, name_option

if TYPE_CHECKING:
    from adbench.atlas.table import Atlas


@click.command(short_help="Find the faults of each release of a library.")
@click.argument("library", metavar="LIB")
@click.option("--show", is_flag=True, help="Print the table that comes with adbench, and run nothing.")
@click.option(
    "--releases",
    "span",
    metavar="A:B",
    help="Cover the releases from A to B, or those of a list V,V,… Default: the twelve newest.",
)
@click.option(
    "--full",
    type=COUNT,
    default=6,
    show_default=True,
    metavar="N",
    help="Run every trap on N releases, at least two, and on those between them the traps that change.",
)
@click.option("--operations", is_flag=True, help="Also run the operations of `adbench conform`.")
@library_option
@name_option(
    *("cases", "-c", "--case", "cases"),
    multiple=True,
    says="Run this case: a name, a glob or a file. Repeat it for more; default: all traps. Other rows stay.",
)
@environment_options
@click.option("--table", type=PATH, metavar="FILE", help="Write or show this table instead of the one in adbench.")
@click.option("--write", "writes", is_flag=True, help="Also update the releases in the library's file of known faults.")
@json_option
def atlas(
    library: str, show: bool, operations: bool, table: Path | None, writes: bool, as_json: bool, **asked: Any
) -> None:
    """Find out which release of LIB has which fault, and which release repaired it.

    Each release gets its own environment, with a Python of this machine that it supports. A few releases run every
    trap. Where two of them differ, the releases between them are bisected.

    \b
    adbench atlas jax --show
    adbench atlas jax --releases 0.8.0:0.12.0
    adbench atlas mylib --wheels dist -b my_backend.py --table mylib.json

    The same command resumes an interrupted atlas.

    Exit code 0: done; releases without results are in the table, with the reason. 2: an option is wrong.
    """
    from adbench.atlas import dating, plan_request
    from adbench.atlas import table as tables
    from adbench.execution import known_faults
    from adbench.model.atomic_file import refuse_file, write_whole
    from adbench.reports.text.terminal import atlas as shown

    file = table or plan_request.table_file(library, is_new=not show)
    if not show:
        refuse_file(file)
        before = tables.read(file) if asked["cases"] and file.is_file() else None
        _make(library, operations, before, lambda made: write_whole(file, tables.text_of(made)), **asked)
    found = tables.read(file)
    if writes:
        path = known_faults.file_of(library)
        empty = known_faults.FaultFile(library=library, backends=(found.backend,))
        known = known_faults.read_file(path) if path.is_file() else empty
        faults = dating.updated(known, found)
        write_whole(path, known_faults.text_of(faults))
        new = {fault.trap for fault in faults.faults if not fault.reason and fault not in known.faults}
        add = f"; add reasons to entries of {', '.join(sorted(new))}" if new else ""
        say(f"wrote {path}{add}")
    if as_json:
        print_json(shown.data(found))
    else:
        click.echo(shown.text(found, width=width(), colour=colour()), nl=False)


def _make(library: str, operations: bool, before: Atlas | None, stored: Callable[[Atlas], None], **asked: Any) -> None:
    """Run what is missing, told on stderr, and store the atlas after each release, with the other rows of `before`."""
    from adbench.atlas.making import made
    from adbench.atlas.plan_request import asked as read
    from adbench.execution import interrupt

    if before is not None:
        asked["span"] = asked["span"] or ",".join(release.name for release in before.releases)
    plan, environments = read(library, **asked)
    interrupt.listen()
    try:
        today = datetime.now(UTC).date().isoformat()
        stored(made(plan, environments, say, stored, today, operations, before=before))
    except interrupt.Interrupted:
        say("interrupted; the same command resumes")
        raise
