"""The verbs that look at what there is and change nothing: list, explain and doctor."""

from __future__ import annotations

import json
from pathlib import Path

import click

from .options import adding_folders, completing
from .screen import colour, width


@click.command("list")
@click.argument("kind", type=click.Choice(["cases", "backends"]))
@adding_folders
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.option("--markdown", is_flag=True, help="Cases as a page.")
@click.option("--suite", "suites", multiple=True, metavar="NAME", help="Only the cases of a published comparison.")
def list_(
    kind: str,
    as_json: bool,
    markdown: bool,
    suites: tuple[str, ...],
    case_folders: tuple[str, ...],
    backend_folders: tuple[str, ...],
) -> None:
    """List the cases or the backends there are.

    \b
    adbench list cases
    adbench list cases --suite gradbench
    adbench list backends --json
    """
    from adbench.suite import catalog, listing
    from adbench.suite.plan import in_suites
    from adbench.suite.resolve import resolve

    if suites and kind != "cases":
        raise click.UsageError(f"--suite is for cases, and these are {kind}; leave it out, or: adbench list cases")
    found = resolve(case_folders=case_folders, backend_folders=backend_folders).catalog
    rows = listing.rows(kind, found)
    if suites:
        chosen = in_suites(found, tuple(found.cases), suites)
        rows = [row for row in rows if row["name"] in chosen]
    if as_json:
        click.echo(json.dumps(rows, indent=1))
    elif markdown and kind == "cases":
        click.echo(catalog.report("case_pages").markdown(rows), nl=False)
    else:
        click.echo(catalog.report("listing").listing(rows, width=width(), colour=colour()), nl=False)


@click.command()
@click.argument("case", metavar="CASE", shell_complete=completing("cases"))
@click.option("-n", "--size", metavar="N", help="Default: the smallest.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the inputs.")
@click.option("--compiled", is_flag=True, help="The recording that is compiled too: its guards and native code.")
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write a page with a drawing instead.")
@click.option("--json", "as_json", is_flag=True, help="For machines; has every line.")
@adding_folders
def explain(
    case: str,
    size: str | None,
    seed: int,
    compiled: bool,
    html: Path | None,
    as_json: bool,
    case_folders: tuple[str, ...],
    backend_folders: tuple[str, ...],
) -> None:
    """The tape of a case: its expression graph, and the forward and reverse tables. CASE is a name or a file.

    \b
    adbench explain normal_log_density
    adbench explain hypot --html hypot.html
    adbench explain projectile --compiled
    """
    from adbench.suite import catalog
    from adbench.suite.plan import positive
    from adbench.suite.resolve import resolve
    from adbench.suite.store import write_whole

    if as_json and html is not None:
        raise click.UsageError("--json and --html contradict each other; give one of them")
    chosen = resolve(cases=(case,), case_folders=case_folders, backend_folders=backend_folders)
    names = catalog.select("case", chosen.catalog.cases, chosen.cases)
    if len(names) > 1:
        raise click.UsageError(f"{case} stands for {len(names)} cases: {', '.join(names)}; name one of them")
    explaining = catalog.report("explaining")
    number = None if size is None else positive(size)
    found = explaining.explained(chosen.catalog, names[0], number, seed=seed, compiled=compiled)
    if html is not None:
        write_whole(html, explaining.page(found))
        click.echo(f"page: {html}")
    elif as_json:
        click.echo(json.dumps(explaining.plain(found), indent=1))
    else:
        click.echo(explaining.text(found, colour=colour()))


@click.command()
@click.option("--memory", "with_memory", is_flag=True, help="Hold the memory methods to known amounts: half a minute.")
@click.option("--backends", "with_backends", is_flag=True, help="Each backend's version, or what installs it.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def doctor(with_memory: bool, with_backends: bool, as_json: bool) -> None:
    """Look at this machine: how well can one measure on it, and what is missing? Changes nothing.

    \b
    adbench doctor
    adbench doctor --backends
    """
    from dataclasses import asdict

    from adbench.suite import catalog
    from adbench.suite.doctor import examine
    from adbench.suite.resolve import resolve

    if with_memory:
        click.echo("adbench: holding known amounts of memory, about half a minute", err=True)
    found = examine(with_memory=with_memory, catalog=resolve().catalog if with_backends else None)
    if as_json:
        click.echo(json.dumps(asdict(found), indent=1))
    else:
        click.echo(catalog.report("doctor").text(found, width=width(), colour=colour()), nl=False)
