"""`adbench history`: the runs in a folder, and what changed over them."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import click

from adbench.cli.support.console import print_json, width
from adbench.cli.support.options import PATH, json_option, share_option

if TYPE_CHECKING:
    from adbench.model.record import Job


@click.command(short_help="Show changes over many runs.")
@click.argument("folder", type=PATH, default=Path("results"))
@click.option(*("-c", "--case", "cases"), multiple=True, metavar="NAME", help="Show cells of this case (name or glob).")
@click.option(*("-b", "--backend", "backends"), multiple=True, metavar="NAME", help="Show cells of this backend.")
@click.option(*("-n", "--size", "sizes"), multiple=True, metavar="N", help="Show cells of this size.")
@click.option("--operator", "operators", multiple=True, metavar="NAME", help="Show cells of this operator.")
@share_option("--margin", "5%", "Ignore changes in time below this share.")
@click.option("--html", "page", type=PATH, metavar="FILE", help="Also write a page with every cell over the runs.")
@json_option
def history(
    folder: Path,
    cases: tuple[str, ...],
    backends: tuple[str, ...],
    sizes: tuple[str, ...],
    operators: tuple[str, ...],
    margin: float,
    page: Path | None,
    as_json: bool,
) -> None:
    """List the runs in FOLDER and its subfolders, newest last, and what changed over them. Default: results.

    \b
    adbench history
    adbench history results --html history.html
    adbench history results --json
    adbench history results -b '*' --operator gradient

    A cell is a case at a size on a backend. A change has the run that it came with, the ratio of times with a 95 %
    interval, and the runs between which it lies if the first is uncertain. Times are compared relative to the reference
    backend of the same run, on one machine. With -c, -b, -n or --operator only these cells are examined and each run of
    them is shown.
    """
    from adbench.model.atomic_file import refuse_file, write_whole
    from adbench.model.errors import UsageError
    from adbench.reports.html import over_time
    from adbench.reports.text import history as shown
    from adbench.results.timeline.cell_series import timelines
    from adbench.results.timeline.history import stored_runs

    if page is not None:
        refuse_file(page)
    patterns = {"case": cases, "size": sizes, "backend": backends, "operator": operators}

    def wanted(job: Job) -> bool:
        return all(
            not given or any(fnmatchcase(str(getattr(job, name)), pattern) for pattern in given)
            for name, given in patterns.items()
        )

    stored = stored_runs(folder)
    found = timelines([content for _, content in stored if content is not None], margin, wanted)
    chosen = any(patterns.values())
    if chosen and not any(timeline.cells for timeline in found):
        raise UsageError(f"no run in {folder} has such a cell; adbench history {folder} --json lists all cells")
    entries = [entry for entry, _ in stored]
    if page is not None:
        write_whole(page, over_time.page_of(found, margin))
    if as_json:
        print_json({"runs": shown.data(entries), "machines": shown.timeline_data(found)})
    else:
        click.echo(shown.text(entries, width()) + shown.timeline_text(found, width(), details=chosen), nl=False)
        if page is not None:
            click.echo(f"page: {page}")
