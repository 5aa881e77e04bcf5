"""`adbench doctor`: how well one can measure on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from adbench.cli.support.console import colour, print_json, say, width
from adbench.cli.support.options import device_option, json_option
from adbench.model.settings import PROCESSOR

if TYPE_CHECKING:
    from adbench.catalog.discovery import Catalog
    from adbench.doctor.findings import MachineFinding


@click.command(short_help="Inspect this machine: how precisely can it measure?")
@click.option("--memory", "with_memory", is_flag=True, help="Also test memory measurements on known amounts (30 s).")
@device_option
@json_option
def doctor(with_memory: bool, device: str, as_json: bool) -> None:
    """Inspect this machine: how precisely can it measure, and what is missing? Changes nothing.

    \b
    adbench doctor
    adbench doctor --device cuda
    """
    from dataclasses import asdict, replace

    from adbench.catalog.selection import resolve
    from adbench.doctor.examine import examine
    from adbench.reports.text.doctor import text

    if with_memory:
        say("testing the memory measurements, about half a minute")
    rates = tuple(_rates(resolve().catalog, device)) if device != PROCESSOR else None
    found = replace(examine(with_memory=with_memory), rates=rates)
    if as_json:
        print_json(asdict(found))
    else:
        click.echo(text(found, width=width(), colour=colour()), nl=False)


def _rates(catalog: Catalog, device: str) -> Iterator[MachineFinding]:
    """How fast each installed library copies and computes on the device. Raises UsageError if none sees it."""
    from adbench.doctor.findings import MachineFinding, in_words
    from adbench.execution.workers.context import Context
    from adbench.execution.workers.process import NoAnswer
    from adbench.execution.workers.resident_worker import ResidentWorker, require_device
    from adbench.execution.workers.supervisor import Supervisor
    from adbench.model.errors import UsageError
    from adbench.model.settings import Settings

    every = catalog.backends.items()
    names = [name for name, one in every if one.is_default and not (one.missing or one.refuses(device))]
    if not names:
        raise UsageError(f"no installed backend runs on {device!r}; omit --device")
    with Supervisor() as supervisor:
        workers = [
            ResidentWorker(Context(supervisor, catalog.on(device), Settings(device=device)), name) for name in names
        ]
        require_device(workers, device)
        for worker in workers:
            try:
                yield MachineFinding(worker.name, in_words(worker.rates()), "ok", "by the library")
            except NoAnswer as no:
                yield MachineFinding(worker.name, no.reason, "unknown", "not measured")
            worker.close()
