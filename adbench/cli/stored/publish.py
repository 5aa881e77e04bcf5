"""`adbench publish`: a site of static pages from many runs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from adbench.cli.support.options import PATH


@click.command(short_help="Write a site from many runs.")
@click.argument("runs", nargs=-1, required=True, type=PATH, metavar="RUN...")
@click.option(
    *("-o", "--output"),
    type=PATH,
    default=Path("site"),
    show_default=True,
    metavar="DIR",
    help="Write to DIR: a new or empty folder, or a site that is replaced.",
)
def publish(runs: tuple[Path, ...], output: Path) -> None:
    """Write a site from many runs: a ranking, the bugs, and a page for each backend, case, machine and run.

    RUN is the folder of a run, its run.json, run.json.gz or journal, a file of adbench conform --save, or the matrix
    of scripts/same-bits. Runs of several machines and versions may be mixed: speed is compared inside a run only.

    \b
    adbench publish january february -o site/
    adbench publish out

    The pages work from disk and on any web server, such as GitHub Pages. Their addresses stay the same.
    """
    from adbench.catalog.discovery import catalog
    from adbench.reports.site.archive import archive
    from adbench.reports.site.folder import SiteFolder
    from adbench.reports.site.pages import Site
    from adbench.reports.site.stored_files import read

    folder = SiteFolder(output)
    found, conformances, sweeps, bits = read(runs)
    site = Site(archive(found, catalog()), conformances, sweeps, bits)
    label = "pages" if sys.stderr.isatty() else ""
    with click.progressbar(site.files(), length=site.count, label=label, file=sys.stderr) as files:
        for address, text in files:
            folder.write(address, text)
    folder.finish()
    click.echo(f"site: {output / 'index.html'}")
