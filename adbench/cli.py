"""The command `adbench`: from argv to the calls that do the work. Data goes to stdout, progress and errors to stderr.

Exit codes: 0 fine, 1 a wrong derivative, 2 usage or unreadable input, 3 slower than before, 4 a backend crashed, timed
out or raised, 5 too noisy to decide, 128 + n interrupted by signal n (130 by Ctrl-C).
Imports of the suite are inside the functions: `adbench --version` must answer at once.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from adbench.suite.errors import AdbenchError
from adbench.version import __version__

if TYPE_CHECKING:
    from adbench.suite.record import Run
    from adbench.suite.session import Session

Command = TypeVar("Command", bound=Callable[..., Any])


def main() -> None:
    """Run the command line; every error that a user can cause is one line on stderr and exit code 2."""
    try:
        sys.exit(cli.main(standalone_mode=False))
    except click.ClickException as error:
        click.echo(f"adbench: {error.format_message()}", err=True)
        sys.exit(2)
    except AdbenchError as error:
        from adbench.suite import catalog

        visible = catalog.report("wording").visible  # a name in it must not act on the terminal
        click.echo(f"adbench: {visible(' '.join(str(error).split()))}", err=True)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt) as interrupted:
        sys.exit(getattr(interrupted, "code", 130))
    except BrokenPipeError:  # `adbench list cases | head -1`
        sys.stderr.close()
        sys.exit(0)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="adbench", message="%(prog)s %(version)s")
def cli() -> None:
    """Is it right, is it fast, is it small? Checks and measures automatic differentiation libraries.

    \b
    adbench run --quick                 check and measure everything, and write a page
    adbench run -c normal_* -b jax      some cases, one backend
    adbench check -b my_backend.py      only check derivatives: for CI
    adbench list cases
    adbench doctor                      how well can one measure on this machine?
    """


def _quantity(name: str) -> Callable[[click.Context, click.Parameter, str | None], Any]:
    """A callback that reads an option's text by that function of suite/units.py."""

    def read(_: click.Context, parameter: click.Parameter, text: str | None) -> Any:
        from adbench.suite import units

        try:
            return None if text is None else getattr(units, name)(text)
        except AdbenchError as error:
            raise click.UsageError(f"{parameter.opts[0]}: {error}") from error

    return read


def adding_folders(command: Command) -> Command:
    """The options that add a user's own cases and backends."""
    for option in (
        click.option("--backends", "backend_folders", multiple=True, metavar="DIR", help="Add a folder of backends."),
        click.option("--cases", "case_folders", multiple=True, metavar="DIR", help="Add a folder of cases."),
    ):
        command = option(command)
    return command


def selecting(command: Command) -> Command:
    """The options that choose cases, backends and sizes, the same for every verb; each may be given several times."""
    for option in (
        adding_folders,
        click.option("-n", "--size", "sizes", multiple=True, metavar="N", help="A size, or a glob over a case's own."),
        click.option(
            "-b", "--backend", "backends", multiple=True, metavar="NAME", help="A backend, a glob, or a file."
        ),
        click.option("-c", "--case", "cases", multiple=True, metavar="NAME", help="A case, a glob, or a file."),
        click.option("--suite", "suites", multiple=True, metavar="NAME", help="The cases of a published comparison."),
    ):
        command = option(command)
    return command


def running(command: Command) -> Command:
    """The options of the verbs that start workers."""
    seconds = click.FloatRange(0, min_open=True)
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print the run as JSON instead of a table."),
        click.option(
            "--mem-limit",
            metavar="SIZE",
            callback=_quantity("bytes_of"),
            help="For a worker and its children, as 4G; default: four fifths of what is free.",
        ),
        click.option(
            "--timeout", type=seconds, default=60.0, show_default=True, metavar="SECONDS", help="For one step."
        ),
        click.option("--threads", type=click.IntRange(1), default=1, show_default=True, help="In every library."),
        click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the cases' inputs."),
    ):
        command = option(command)
    return command


@cli.command("list")
@click.argument("kind", type=click.Choice(["cases", "backends"]))
@adding_folders
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.option("--markdown", is_flag=True, help="Cases as a page.")
def list_(
    kind: str, as_json: bool, markdown: bool, case_folders: tuple[str, ...], backend_folders: tuple[str, ...]
) -> None:
    """List the cases or the backends there are."""
    from adbench.suite import catalog, listing
    from adbench.suite.resolve import resolve

    rows = listing.rows(kind, resolve(case_folders=case_folders, backend_folders=backend_folders).catalog)
    if as_json:
        click.echo(json.dumps(rows, indent=1))
    elif markdown and kind == "cases":
        click.echo(catalog.report("case_pages").markdown(rows), nl=False)
    else:
        click.echo(catalog.report("listing").listing(rows, width=_width(), colour=_colour()))


@cli.command(context_settings={"ignore_unknown_options": True})  # --at -1.0 -2.0
@click.argument("more", nargs=-1, metavar="")
@selecting
@click.option("--operator", "operators", multiple=True, metavar="NAME", help="Default: all, and relations.")
@click.option("--points", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="Seeds to check at.")
@click.option("--function", metavar="MODULE:F", help="Check a function of your own, on the tape unless -b says else.")
@click.option("--at", metavar="X ...", help="Where: one number for each argument, or a vector.")
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE", help="Write JUnit XML too.")
@click.option("--fail-fast", is_flag=True, help="Stop at the first that is wrong.")
@running
def check(
    as_json: bool,
    junit: Path | None,
    fail_fast: bool,
    function: str | None,
    at: str | None,
    more: tuple[str, ...],
    **asked: Any,
) -> None:
    """Check values and derivatives, without timing them. Exit code 1 where one is wrong.

    \b
    adbench check                      everything installed, at small sizes
    adbench check -b my_backend.py -c matrix_product -n 8 --points 5
    adbench check --function mymodule:f --at 1.0 2.0
    """
    from adbench.suite import catalog
    from adbench.suite.own_function import asking_for
    from adbench.suite.store import write_whole

    with asking_for(function, at, more, asked) as everything:
        session = _session(everything, time=False, memory=False, quick=True)
        found, code = _go(session, None, fail_fast=fail_fast)
    if junit is not None:
        write_whole(junit, catalog.report("junit").render(found))
    _show(found, as_json)
    sys.exit(code)


@cli.command()
@selecting
@click.option("--operator", "operators", multiple=True, metavar="NAME", help="Default: each case's own.")
@click.option("--quick", is_flag=True, help="Fewer sizes, launches and epochs: a first look in under two minutes.")
@click.option("--rigorous", is_flag=True, help="20 launches: figures that others will hold you to.")
@click.option("--launches", type=click.IntRange(1), metavar="N", help="Fresh processes of each backend; default: 8.")
@click.option("--memory/--no-memory", default=True, help="Measure memory too, in processes of its own.")
@click.option("--reference", metavar="NAME", help="The backend that is measured twice, as the control; default: tape.")
@click.option(
    "--margin",
    metavar="SHARE",
    default="2%",
    show_default=True,
    callback=_quantity("share_of"),
    help="Times that differ by less count as equal.",
)
@click.option(
    "--budget", metavar="TIME", callback=_quantity("seconds_of"), help="Plan to fit, as 10m; says what it leaves out."
)
@click.option("--plan", "plan_only", is_flag=True, help="Print what would run and about how long, and run nothing.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="DIR", help="Default: results/<time>/.")
@click.option(
    "--resume", type=click.Path(path_type=Path), metavar="DIR", help="Go on with the interrupted run in this folder."
)
@running
@click.pass_context
def run(
    context: click.Context, /, output: Path | None, resume: Path | None, plan_only: bool, as_json: bool, **asked: Any
) -> None:
    """Check, then measure time and memory; write run.json and report.html.

    \b
    adbench run --quick
    adbench run -c 'normal_*' -n 1000 -b jax -b autograd -o out
    adbench run --budget 10m
    adbench run --resume out
    """
    from adbench.suite import catalog
    from adbench.suite import session as sessions
    from adbench.suite.store import PAGE, default_folder, write_run, write_whole

    _refuse_contradictions(context)
    session = sessions.resume(resume) if resume else _session(asked, time=True)
    if plan_only:
        _show_plan(session, as_json)
        return
    folder = resume or output or default_folder()
    found, code = _go(session, None if resume else folder, first=catalog.report("planned").sentence(session))
    data = write_run(folder, found)  # before the page: a fault in drawing it must not cost what was measured
    write_whole(folder / PAGE, catalog.report("html").render(found))
    _show(found, as_json)
    click.echo(f"data: {data}\npage: {folder / PAGE}", err=as_json)
    if code > 128:
        click.echo(f"adbench: interrupted; to go on: adbench run --resume {folder}", err=True)
    sys.exit(code)


@cli.command()
@click.option("--memory", "with_memory", is_flag=True, help="Hold the memory methods to known amounts: half a minute.")
@click.option("--backends", "with_backends", is_flag=True, help="Each backend's version, or what installs it.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def doctor(with_memory: bool, with_backends: bool, as_json: bool) -> None:
    """Look at this machine: how well can one measure on it, and what is missing? Changes nothing."""
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
        click.echo(catalog.report("doctor").text(found, width=_width(), colour=_colour()))


FORMATS = {"html": "html", "md": "markdown", "csv": "spreadsheet", "junit": "junit"}
SUFFIXES = {".html": "html", ".htm": "html", ".md": "md", ".csv": "csv", ".xml": "junit"}


@cli.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Default: report.html beside the run."
)
@click.option("--format", "form", type=click.Choice(list(FORMATS)), help="Default: by the name of FILE, else html.")
@click.option(
    "--margin",
    metavar="SHARE",
    default="5%",
    show_default=True,
    callback=_quantity("share_of"),
    help="Of several runs: what is slower by less is no regression.",
)
def report(runs: tuple[Path, ...], output: Path | None, form: str | None, margin: float) -> None:
    """Make a report of a run: its folder, its run.json, or the journal of one that is not finished.

    \b
    adbench report results/<time>               the page again
    adbench report out -o out.md                for a pull request; also .csv, and .xml (JUnit) for CI
    adbench report january february -o all.html     lines over time, regressions marked; machines side by side

    All but the page go to stdout where there is no -o.
    """
    from adbench.suite import catalog
    from adbench.suite.store import PAGE, read_run, write_whole

    form = form or ("html" if output is None else SUFFIXES.get(output.suffix.lower()))
    if form is None:
        raise click.UsageError(f"{output}: which form? It ends in none of {', '.join(SUFFIXES)}; give --format")
    if len(runs) > 1 and form != "html":
        raise click.UsageError(f"{form} tells of one run; two of them: adbench compare OLD NEW --markdown")
    if len(runs) > 1:
        text = catalog.report("over_time").render([(str(run), read_run(run)) for run in runs], margin=margin)
        output = output or Path("runs.html")
    else:
        text = catalog.report(FORMATS[form]).render(read_run(runs[0]))
        if form == "html":
            output = output or (runs[0] if runs[0].is_dir() else runs[0].parent) / PAGE
    if output is None:
        click.echo(text, nl=False)
    else:
        write_whole(output, text)
        click.echo(f"{'page' if form == 'html' else 'report'}: {output}")


@cli.command()
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option(
    "--margin",
    metavar="SHARE",
    default="5%",
    show_default=True,
    callback=_quantity("share_of"),
    help="What may be slower by less is no regression.",
)
@click.option(
    "--memory-margin",
    metavar="SHARE",
    default="10%",
    show_default=True,
    callback=_quantity("share_of"),
    help="The same for memory.",
)
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

    Each is a folder, a run.json, a journal, or a JSON file of pytest-benchmark or pyperf. Exit code with --fail-on: 1 a
    derivative that is wrong or fails now, 3 slower or more memory, 5 where that cannot be told.
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
        click.echo(shown.text(found, width=_width(), colour=_colour()), nl=False)
    sys.exit(code)


@cli.command()
@click.argument("folder", type=click.Path(path_type=Path), default=Path("results"))
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def history(folder: Path, as_json: bool) -> None:
    """List the runs in a folder and those below it, newest last. Default: results."""
    from adbench.suite import catalog
    from adbench.suite.history import history as listed

    found = listed(folder)
    shown = catalog.report("history")
    click.echo(json.dumps(shown.data(found), indent=1) if as_json else shown.text(found, _width()), nl=as_json)


def _session(asked: dict[str, Any], **settings: Any) -> Session:
    """What was asked for on the command line, planned; says on stderr what of it does not exist."""
    from adbench.suite.session import prepare

    session = prepare(**asked, **settings)
    for text in session.plan.left_out:
        click.echo(f"adbench: left out: {text}", err=True)
    for text in session.warnings():
        click.echo(f"adbench: warning: {text}", err=True)
    return session


def _refuse_contradictions(context: click.Context) -> None:
    """Raises UsageError for options that do not go together."""
    from click.core import ParameterSource

    given = [
        option.opts[0]
        for option in context.command.params
        if option.name and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    ]
    if "--resume" in given and (others := sorted(set(given) - {"--resume", "--json"})):
        raise click.UsageError(f"--resume goes on as the run was begun; it does not go with {', '.join(others)}")
    if {"--quick", "--rigorous"} <= set(given):
        raise click.UsageError("--quick and --rigorous contradict each other; give one of them")


def _show_plan(session: Session, as_json: bool) -> None:
    """Print what would run, as a table or as JSON."""
    from adbench.suite import catalog

    planned = catalog.report("planned")
    if as_json:
        click.echo(json.dumps(planned.plain(session), indent=1))
    else:
        click.echo(planned.table(session, width=_width()), nl=False)


def _go(session: Session, folder: Path | None, *, first: str = "", fail_fast: bool = False) -> tuple[Run, int]:
    """Run the session under a progress bar, its journal in the folder; `first` is said once it has begun.

    Interrupted: what was finished, and 128 + n.
    """
    from adbench.suite import catalog, interrupt
    from adbench.suite.events import Checked
    from adbench.suite.session import exit_code

    interrupt.listen()
    code = None
    with catalog.report("progress").Bar(session.settings.left_out) as bar:
        try:
            with closing(session.events(folder)) as events:
                for event in events:
                    if first:
                        bar.say(first)
                        first = ""
                    bar.show(event, session.forecast.remaining)
                    bad = isinstance(event, Checked) and event.record.status in ("wrong", "surprise")
                    if fail_fast and bad:
                        break
        except interrupt.Interrupted as interrupted:
            code = interrupted.code
    found = session.result()
    return found, code or exit_code(found.records)


def _show(found: Run, as_json: bool) -> None:
    """Print the table, or the run as JSON."""
    from adbench.suite import catalog
    from adbench.suite.store import dumps

    if as_json:
        click.echo(dumps(found), nl=False)
    else:
        click.echo(catalog.report("terminal").table(found, width=_width(), colour=_colour()))


def _width() -> int:
    return shutil.get_terminal_size((100, 24)).columns


def _colour() -> bool:
    """Colours only on a terminal, and not where NO_COLOR is set (no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
