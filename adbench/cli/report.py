"""`adbench report`: a page or a file from runs."""

from __future__ import annotations

from pathlib import Path

import click

from adbench.cli.support.console import width
from adbench.cli.support.execute import print_run
from adbench.cli.support.options import PATH, share_option, without_own_option
from adbench.cli.support.output_formats import FORMATS, format_of, suffixes, text_of, write


@click.command(short_help="Write a report of a run as HTML, Markdown, CSV or others.")
@click.argument("runs", nargs=-1, required=True, type=PATH, metavar="RUN...")
@click.option(
    "-o",
    "--output",
    type=PATH,
    metavar="FILE",
    help="Write to FILE; default: report.html next to the run.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMATS)),
    metavar="NAME",
    help=f"Write this format: {', '.join(FORMATS)}. Default: by the suffix of FILE, else html.",
)
@share_option("--margin", "5%", "With several runs: ignore changes in time below this share.")
@click.option("--from-gradbench", is_flag=True, help="RUN is a gradbench log; show gradbench's own numbers.")
@click.option("--details", is_flag=True, help="Print every size, operator and reason in the terminal instead.")
@without_own_option
def report(
    runs: tuple[Path, ...],
    output: Path | None,
    form: str | None,
    margin: float,
    from_gradbench: bool,
    details: bool,
    without_own: bool,
) -> None:
    """Write a report of a run. RUN is its folder, its run.json, or the journal of an unfinished run.

    \b
    adbench report results/<time>                 write the page again
    adbench report results/<time> --details       every result, in the terminal
    adbench report out -o out.md                  for a pull request; also .csv
    adbench report out -o out.xml                 JUnit, for CI
    adbench report out -o out.sarif               annotations for GitHub
    adbench report out -o out.codequality.json    annotations for GitLab
    adbench report out -o out.json                all data, as in run.json
    adbench report january february -o all.html   several runs over time
    adbench report --from-gradbench log.jsonl     the results of a gradbench log

    Without -o, formats other than HTML go to stdout.
    """
    from adbench.model.atomic_file import write_whole
    from adbench.reports.html import over_time
    from adbench.reports.text import terminal
    from adbench.results.importers.gradbench_log import read_log
    from adbench.results.store import PAGE, read_run

    if details:
        if output or form or len(runs) > 1:
            raise click.UsageError("--details prints one run in the terminal; leave out -o, --format and other runs")
        print_run(
            (read_log if from_gradbench else read_run)(runs[0]), as_json=False, details=True, without_own=without_own
        )
        return
    form = form or ("html" if output is None else format_of(output))
    if form is None:
        raise click.UsageError(f"{output} ends in none of {suffixes()}; choose the format with --format")
    if len(runs) > 1 and form != "html":
        raise click.UsageError(f"{form} shows one run, not {len(runs)}; for two: adbench compare OLD NEW --markdown")
    if from_gradbench and len(runs) > 1:
        raise click.UsageError(f"--from-gradbench shows one log, not {len(runs)}; for two: adbench compare OLD NEW")
    if len(runs) > 1:
        text = over_time.render([(str(run), read_run(run)) for run in runs], margin=margin)
        output = output or Path("runs.html")
        write_whole(output, text)
    else:
        found = (read_log if from_gradbench else read_run)(runs[0])
        if form == "html":
            output = output or (runs[0] if runs[0].is_dir() else runs[0].parent) / PAGE
        if output is None:
            click.echo(text_of(found, form), nl=False)
            return
        write(found, form, output)
        click.echo(terminal.answer(found, width=width(), without_own=without_own), nl=False)
    click.echo(f"{'page' if form == 'html' else 'report'}: {output}")
