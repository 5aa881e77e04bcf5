"""The verbs that read runs: report, compare and history."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from .options import share
from .screen import colour, width

FORMATS = {"html": "html", "md": "markdown", "csv": "spreadsheet", "junit": "junit"}
SUFFIXES = {".html": "html", ".htm": "html", ".md": "md", ".csv": "csv", ".xml": "junit"}


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Default: report.html beside the run."
)
@click.option("--format", "form", type=click.Choice(list(FORMATS)), help="Default: by the name of FILE, else html.")
@share("--margin", "5%", "Of several runs: what is slower by less is no regression.")
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
    from adbench.suite import catalog
    from adbench.suite.gradbench_log import read_log
    from adbench.suite.store import PAGE, read_run, write_whole

    form = form or ("html" if output is None else SUFFIXES.get(output.suffix.lower()))
    if form is None:
        raise click.UsageError(f"{output}: which form? It ends in none of {', '.join(SUFFIXES)}; give --format")
    if len(runs) > 1 and form != "html":
        raise click.UsageError(f"{form} tells of one run; two of them: adbench compare OLD NEW --markdown")
    if from_gradbench and len(runs) > 1:
        raise click.UsageError("--from-gradbench shows one log; two of them: adbench compare OLD NEW")
    if len(runs) > 1:
        text = catalog.report("over_time").render([(str(run), read_run(run)) for run in runs], margin=margin)
        output = output or Path("runs.html")
    else:
        read = read_log if from_gradbench else read_run
        text = catalog.report(FORMATS[form]).render(read(runs[0]))
        if form == "html":
            output = output or (runs[0] if runs[0].is_dir() else runs[0].parent) / PAGE
    if output is None:
        click.echo(text, nl=False)
    else:
        write_whole(output, text)
        click.echo(f"{'page' if form == 'html' else 'report'}: {output}")


@click.command()
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@share("--margin", "5%", "What may be slower by less is no regression.")
@share("--memory-margin", "10%", "The same for memory.")
@click.option("--fail-on", metavar="WHAT,…", help="What turns the exit code: regression, correctness, memory.")
@click.option("--absolute", "--force", is_flag=True, help="Compare times by the clock alone, even of two machines.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
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
    from adbench.suite import catalog, comparing
    from adbench.suite.foreign import read_side

    if as_json and markdown:
        raise click.UsageError("--json and --markdown contradict each other; give one of them")
    gates = comparing.gates_of(fail_on)
    found = comparing.compare(
        read_side(old), read_side(new), margin=margin, memory_margin=memory_margin, absolute=absolute
    )
    code = comparing.exit_code(found, gates)
    shown = catalog.report("comparison")
    if as_json:
        click.echo(json.dumps(shown.data(found, code), indent=1))
    elif markdown:
        click.echo(shown.markdown(found), nl=False)
    else:
        click.echo(shown.text(found, width=width(), colour=colour()), nl=False)
    sys.exit(code)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default=Path("results"))
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def history(folder: Path, as_json: bool) -> None:
    """List the runs in a folder and those below it, newest last. Default: results.

    \b
    adbench history
    adbench history results --json
    """
    from adbench.suite import catalog
    from adbench.suite.history import history as listed

    found = listed(folder)
    shown = catalog.report("history")
    click.echo(json.dumps(shown.data(found), indent=1) if as_json else shown.text(found, width()), nl=as_json)
