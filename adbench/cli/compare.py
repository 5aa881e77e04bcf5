"""`adbench compare`: what changed between two runs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from adbench.cli.support.console import colour, print_json, width
from adbench.cli.support.options import PATH, json_option, share_option


@click.command()
@click.argument("old", type=PATH)
@click.argument("new", type=PATH)
@share_option("--margin", "5%", "What may be slower by less is no regression.")
@share_option("--memory-margin", "10%", "The same for memory.")
@click.option("--fail-on", metavar="WHAT,…", help="What turns the exit code: regression, correctness, memory.")
@click.option("--absolute", "--force", is_flag=True, help="Compare times by the clock alone, even of two machines.")
@json_option
@click.option("--markdown", is_flag=True, help="For a pull request.")
def compare(
    old: Path,
    new: Path,
    margin: float,
    memory_margin: float,
    fail_on: str | None,
    absolute: bool,
    as_json: bool,
    markdown: bool,
) -> None:
    """What became of the run OLD in the run NEW: slower, faster, wrong, or no different.

    \b
    adbench compare base/ new/ --fail-on regression,correctness
    adbench compare base/run.json new/run.json --markdown

    Each is a folder, a run.json, a journal, a log of gradbench's, or a JSON file of pytest-benchmark or pyperf. Exit
    code with --fail-on: 1 a derivative that is wrong or fails now, 3 slower or more memory, 5 where that cannot be
    told.
    """
    from adbench.catalog.discovery import report_module
    from adbench.results import compare as comparing
    from adbench.results.importers.timing_files import read_input

    if as_json and markdown:
        raise click.UsageError("--json and --markdown contradict each other; give one of them")
    gates = comparing.gates_of(fail_on)
    found = comparing.compare(
        read_input(old), read_input(new), margin=margin, memory_margin=memory_margin, absolute=absolute
    )
    code = comparing.exit_code(found, gates)
    shown = report_module("text.comparison")
    if as_json:
        print_json(shown.data(found, code))
    elif markdown:
        click.echo(shown.markdown(found), nl=False)
    else:
        click.echo(shown.text(found, width=width(), colour=colour()), nl=False)
    sys.exit(code)
