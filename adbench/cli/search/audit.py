"""`adbench audit`: find the wrong gradients that the tests of a suite notice. adbench's plug-in of pytest does it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import click

from adbench.cli.support.console import say
from adbench.cli.support.options import PATH, SECONDS, json_option


@click.command(
    short_help="Spoil gradients: which tests of a suite notice?", context_settings={"ignore_unknown_options": True}
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[PYTEST ARGUMENTS]")
@click.option("--report", "reports", multiple=True, type=PATH, metavar="FILE", help="Write FILE: .html, .json or .xml.")
@click.option(
    "--limit", type=SECONDS, default=300.0, show_default=True, metavar="S",
    help="End an unspoiled test after this time.",
)  # fmt: skip
@json_option
def audit(arguments: tuple[str, ...], reports: tuple[Path, ...], limit: float, as_json: bool) -> None:
    """Run each gradient test of a pytest suite again with spoiled gradients, and show what it notices.

    The gradients of torch, jax, autograd, equinox and flax are spoiled on their way to the test: zeros, 10 % and 0.1 %
    too large, negated, NaN, one row zero, two exchanged, in lower precision. The suite is not changed, and nothing is
    written into its folder. A test runs at most nine times. Write PYTEST ARGUMENTS after -- if they look like options
    of this command.

    Exit code 0: every gradient test notices an error of 10 %. 1: some do not. 2: pytest refuses its arguments.
    4: no gradient test was judged.

    \b
    adbench audit tests
    adbench audit --report audit.html tests/test_layers.py -k backward
    adbench audit tests -n auto
    """
    from adbench.audit.audited import AuditedTest
    from adbench.model.errors import UsageError
    from adbench.optional import require
    from adbench.reports.formats.audit_files import read, refuse

    require("pytest", "adbench audit")
    for file in reports:
        refuse(file)
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder, "audit.json")
        wanted = [f"--adbench-audit-report={file}" for file in (found, *reports)]
        options = ["--adbench-audit", f"--adbench-audit-limit={limit}", *wanted, "--continue-on-collection-errors"]
        quiet = ["-q", "--no-header", "-p", "no:cacheprovider"]
        if find_spec("pytest_benchmark") and "no:benchmark" not in arguments:
            options.append(f"--benchmark-storage={folder}")
        command = [sys.executable, "-m", "pytest", *quiet, *options, *arguments]
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "HYPOTHESIS_STORAGE_DIRECTORY": folder}
        done = subprocess.run(command, env=environment, stdout=2 if as_json else None)
        if done.returncode == 4:
            raise UsageError("pytest refused its arguments, see above; correct them")
        if not found.exists():
            raise UsageError(f"pytest ended with exit code {done.returncode} before the audit, see above; repair that")
        if as_json:
            click.echo(found.read_text("utf-8"), nl=False)
        tests: list[AuditedTest] = read(found)
    for file in reports:
        say(f"wrote {file}")
    judged = [test for test in tests if not test.set_aside]
    sys.exit(4 if not judged else int(any("ten_percent" in test.missed for test in judged)))
