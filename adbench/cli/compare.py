"""`adbench compare`: what changed between two runs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from adbench.cli.support.console import colour, print_json, say, width
from adbench.cli.support.options import PATH, json_option, margins_of, quantity, share_option


@click.command(short_help="Compare two runs.")
@click.argument("old", type=PATH)
@click.argument("new", type=PATH)
@click.option(
    "--margin",
    "margins",
    multiple=True,
    metavar="[NAME=]SHARE",
    default=("5%",),
    show_default=True,
    callback=quantity(margins_of),
    help="Ignore changes in time below this share; NAME=50% for one benchmark, cell or case, or a glob. Repeatable.",
)
@share_option("--memory-margin", "10%", "Ignore changes in memory below this share.")
@click.option(
    "--fail-on",
    metavar="WHAT,…",
    help="Exit with an error on these findings: regression, correctness, memory, instructions.",
)
@click.option("--absolute", "--force", is_flag=True, help="Compare seconds directly, even between two machines.")
@json_option
@click.option("--markdown", is_flag=True, help="Print Markdown, for example for a pull request.")
def compare(
    old: Path,
    new: Path,
    margins: tuple[float | None, dict[str, float]],
    memory_margin: float,
    fail_on: str | None,
    absolute: bool,
    as_json: bool,
    markdown: bool,
) -> None:
    """Compare two runs: which cells are slower, faster, wrong or unchanged in NEW.

    \b
    adbench compare base/ new/ --fail-on regression,correctness
    adbench compare base/run.json new/run.json --markdown
    adbench compare base.json new.json --margin 10% --margin 'test_parse*=150%'

    A cell is a case at a size on a backend. OLD and NEW are folders of runs, run.json files, journals, gradbench logs,
    or JSON files of pytest-benchmark or pyperf.

    Exit code with --fail-on: 0 no such finding, 1 a derivative is now wrong or fails, 3 slower, or more memory or
    instructions, 4 nothing was compared, 5 too noisy to decide about times.
    """
    from adbench.reports.text import comparison
    from adbench.results import compare as comparing
    from adbench.results import gates
    from adbench.results.importers.timing_files import read_input

    if as_json and markdown:
        raise click.UsageError("--json and --markdown contradict each other; give one of them")
    findings = gates.gates_of(fail_on)
    margin, named = margins
    found = comparing.compare(
        read_input(old),
        read_input(new),
        margin=0.05 if margin is None else margin,
        margins=named,
        memory_margin=memory_margin,
        absolute=absolute,
    )
    code = gates.exit_code(found, findings)
    if as_json:
        print_json(comparison.data(found, code))
    elif markdown:
        click.echo(comparison.markdown(found), nl=False)
    else:
        click.echo(comparison.text(found, width=width(), colour=colour()), nl=False)
    if code == 4:
        say(f"nothing was compared: {gates.not_compared(found, findings)}")
    sys.exit(code)
