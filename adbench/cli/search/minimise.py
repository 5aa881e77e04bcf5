"""`adbench minimise`: the smallest program of a finding, and the files that report it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click

from adbench.cli.support.console import print_json, say
from adbench.cli.support.options import PATH, SECONDS, json_option


@click.command(short_help="Shrink a finding of fuzz.")
@click.argument("finding", type=PATH, metavar="FINDING")
@click.option(
    "--seconds", type=SECONDS, default=60.0, show_default=True, metavar="S", help="Stop shrinking after this time."
)
@click.option(*("-o", "--output"), type=PATH, metavar="DIR", help="Write to DIR. Default: the folder of FINDING.")
@json_option
def minimise(finding: Path, seconds: float, output: Path | None, as_json: bool) -> None:
    """Shrink FINDING, a JSON file of adbench fuzz, and write how to reproduce it.

    Writes a script that needs only the library and numpy, the text of an issue and a trap. Nothing is sent anywhere.

    Exit code 0: the installed version no longer has the fault. 1: it still has it. 4: it has no answer to be judged.
    """
    from adbench.catalog.selection import installed, resolve
    from adbench.findings.finding import read
    from adbench.findings.programs.campaign import minimised, still
    from adbench.findings.programs.laboratory import Laboratory
    from adbench.findings.programs.reproduction import ran, write_files

    given = read(finding)
    chosen = resolve(backends=(given.library, *filter(None, [given.peer])))
    names = installed(chosen)
    if given.library not in names:  # the path of a file
        given = replace(given, library=names[0])
    with Laboratory.of_workers(chosen.catalog, names, device=given.device) as laboratory:
        now = still(laboratory, replace(given, edge=True), given.program)  # at an edge or not
        if now is None:
            seen = laboratory.examine(given.program, (given.operator,))
            if given.library not in seen.answered:
                reason = "; ".join(seen.refused.values()) or "the library gave no answer"
                say(f"{given.library} cannot be judged on this program: {reason}")
                sys.exit(4)
            click.echo(f"{given.library} {laboratory.versions[given.library]} does not have this fault any more")
            return
        small = minimised(laboratory, replace(now, origin=given.origin, known=given.known), seconds)
    files = write_files(small, output or finding.parent)
    if as_json:
        print_json(small.to_plain())
        sys.exit(1)
    click.echo(small.title)
    click.echo(small.program.source())
    click.echo("\n".join(f"wrote {file}" for file in files))
    code, printed = ran(files[1])
    click.echo(f"\npython {files[1]}    exit code {code}\n{printed}")
    sys.exit(1)
