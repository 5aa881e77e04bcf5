"""`adbench gradbench-tool`: a backend as a tool of gradbench."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from adbench.cli.support.options import WholeNumber, folder_options
from adbench.model.settings import MOST_THREADS

if TYPE_CHECKING:
    from adbench.model.backend import Backend


@click.command("gradbench-tool", short_help="Serve a backend as a tool of gradbench.")
@click.option("-b", "--backend", required=True, metavar="NAME", help="Answer with this backend: a name or a file.")
@folder_options
@click.option(
    "--threads",
    type=WholeNumber(1, MOST_THREADS),
    default=1,
    show_default=True,
    help="Allow every library this many threads.",
)
def gradbench_tool(backend: str, case_folders: tuple[str, ...], backend_folders: tuple[str, ...], threads: int) -> None:
    """Serve a backend as a gradbench tool: read messages on stdin, write responses to stdout.

    \b
    adbench gradbench-tool -b tape < messages.jsonl
    gradbench run --eval '…' --tool 'adbench gradbench-tool -b jax'

    Standard output carries only the protocol. Output of libraries goes to standard error.
    """
    from adbench.measure.machine import thread_environment

    os.environ.update(thread_environment(threads))  # libraries, numpy too, read it when they are imported

    from adbench.catalog.discovery import load
    from adbench.catalog.selection import installed, resolve
    from adbench.interop.gradbench.tool import serve

    chosen = resolve(backends=[backend], case_folders=case_folders, backend_folders=backend_folders)
    found = installed(chosen)
    if len(found) > 1:
        raise click.UsageError(f"-b {backend} matches {len(found)} backends: {', '.join(found)}; name one of them")
    source = chosen.catalog.backends[found[0]]

    def loaded() -> Backend:
        from adbench.model.backend import from_module

        return from_module(source.name, load(source))

    serve(loaded)
