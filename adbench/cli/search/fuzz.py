"""`adbench fuzz`: random programs in search of wrong derivatives."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from adbench.cli.support.console import print_json, say, width
from adbench.cli.support.options import COUNT, PATH, SECONDS, SEED, device_option, json_option, name_option


@click.command()
@name_option(
    *("backends", "-b", "--backend", "backends"),
    multiple=True,
    says="Examine this backend: a name or a file. Repeat it for more. Default: tape.",
)
@click.option("--seconds", type=SECONDS, default=60.0, show_default=True, metavar="S", help="Stop after this time.")
@click.option("--programs", type=COUNT, metavar="N", help="Stop after N programs.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Draw the programs of this seed.")
@click.option("--nan", is_flag=True, help="Put a NaN into an input. The value must then be NaN, as it is on numpy.")
@device_option
@click.option(
    *("-o", "--output"), type=PATH, default=Path("findings"), show_default=True, metavar="DIR",
    help="Write findings to DIR.",
)  # fmt: skip
@json_option
def fuzz(
    backends: tuple[str, ...],
    seconds: float,
    programs: int | None,
    seed: int,
    nan: bool,
    device: str,
    output: Path,
    as_json: bool,
) -> None:
    """Search for wrong derivatives with random programs.

    Each program has 1 to 30 operations. Its derivatives by every backend are compared with 50 digits. A program with
    a wrong one is shrunk, and written to DIR as a finding, a script, the text of an issue and a trap.

    A finding is "at an edge" if an operation has no derivative there (a tie, a root of zero) although the program has
    one, and "known" if the backend has a known bug on a trap with the same functions and the same outcome.

    Exit code 0: nothing else was found. 1: something new was. 4: nothing was checked with one of the backends.
    130 after Ctrl-C, which prints the summary.

    \b
    adbench fuzz -b jax -b torch --seconds 60
    adbench fuzz -b jax -b jax_eager --seed 3 --device cuda
    adbench minimise findings/torch_nan_sqrt.json
    """
    from adbench.catalog.selection import installed, resolve
    from adbench.findings.programs.campaign import Campaign
    from adbench.findings.programs.laboratory import Laboratory
    from adbench.findings.programs.reproduction import write_files
    from adbench.reports.text.marks import wrapped
    from adbench.reports.text.planned import duration
    from adbench.reports.text.status_line import StatusLine

    def told(campaign: Campaign) -> None:
        left = duration(max(0.0, seconds - campaign.seconds))
        line.show(f"{campaign.programs} programs, {len(campaign.findings)} findings, at most {left} left")

    line = StatusLine()
    interrupted: BaseException | None = None
    chosen = resolve(backends=backends or ("tape",))
    names = installed(chosen)
    with Laboratory.of_workers(chosen.catalog, names, seed, device) as laboratory:
        campaign = Campaign(laboratory, seed, chosen.catalog.cases, laboratory.lacking(), nan)
        try:
            for one in campaign.run(seconds, programs, told):
                line.end()
                files = write_files(one, output)
                if not as_json:
                    before = "known: " if one.known else "at an edge: " if one.edge else ""
                    click.echo(f"{before}{one.title}\n    {one.words}")
                    click.echo(f"    {one.known}" if one.known else f"    {files[1]}")
        except KeyboardInterrupt as signalled:  # print the findings first
            interrupted = signalled
    line.end()
    if as_json:
        print_json(campaign.to_plain())
    else:
        click.echo("\n".join(wrapped(text, width()) for text in campaign.summary.splitlines()))
    if interrupted is not None:
        raise interrupted
    for sentence in campaign.unjudged:
        say(sentence)
    sys.exit(1 if campaign.new else 4 if campaign.unjudged else 0)
