"""`adbench report`: a page or a file from runs."""

from __future__ import annotations

from pathlib import Path

import click

from adbench.cli.support.options import PATH, share_option

FORMATS = {"html": "html.page", "md": "text.markdown", "csv": "text.spreadsheet", "junit": "text.junit"}
SUFFIXES = {".html": "html", ".htm": "html", ".md": "md", ".csv": "csv", ".xml": "junit"}


@click.command()
@click.argument("runs", nargs=-1, required=True, type=PATH, metavar="RUN...")
@click.option("-o", "--output", type=PATH, metavar="FILE", help="Default: report.html beside the run.")
@click.option("--format", "form", type=click.Choice(list(FORMATS)), help="Default: by the name of FILE, else html.")
@share_option("--margin", "5%", "Of several runs: what is slower by less is no regression.")
@click.option("--from-gradbench", is_flag=True, help="RUN is a log of gradbench's, LOG.jsonl: in its own figures.")
def report(runs: tuple[Path, ...], output: Path | None, form: str | None, margin: float, from_gradbench: bool) -> None:
    """Make a report of a run: its folder, its run.json, or the journal of one that is not finished.

    \b
    adbench report results/<time>               the page again
    adbench report out -o out.md                for a pull request; also .csv, and .xml (JUnit) for CI
    adbench report january february -o all.html     lines over time, regressions marked; machines side by side
    adbench report --from-gradbench log.jsonl       what gradbench measured and judged, as it did

    All but the page go to stdout where there is no -o.
    """
    from adbench.catalog.discovery import report_module
    from adbench.model.atomic_file import write_whole
    from adbench.results.importers.gradbench_log import read_log
    from adbench.results.store import PAGE, read_run

    form = form or ("html" if output is None else SUFFIXES.get(output.suffix.lower()))
    if form is None:
        raise click.UsageError(f"{output}: which form? It ends in none of {', '.join(SUFFIXES)}; give --format")
    if len(runs) > 1 and form != "html":
        raise click.UsageError(f"{form} tells of one run; two of them: adbench compare OLD NEW --markdown")
    if from_gradbench and len(runs) > 1:
        raise click.UsageError("--from-gradbench shows one log; two of them: adbench compare OLD NEW")
    if len(runs) > 1:
        text = report_module("html.over_time").render([(str(run), read_run(run)) for run in runs], margin=margin)
        output = output or Path("runs.html")
    else:
        read = read_log if from_gradbench else read_run
        text = report_module(FORMATS[form]).render(read(runs[0]))
        if form == "html":
            output = output or (runs[0] if runs[0].is_dir() else runs[0].parent) / PAGE
    if output is None:
        click.echo(text, nl=False)
    else:
        write_whole(output, text)
        click.echo(f"{'page' if form == 'html' else 'report'}: {output}")
