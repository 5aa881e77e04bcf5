"""The verbs that help to begin: new and completion."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("kind", type=click.Choice(["case", "backend"]))
@click.argument("name")
def new(kind: str, name: str) -> None:
    """Write NAME.py here: a commented case or backend that works as it stands, for you to change.

    \b
    adbench new case my_case
    adbench new backend my_library
    """
    from adbench.suite.starting import start

    started = start(kind, name, Path())
    first, *later = started.commands
    click.echo(f"{started.file}: change it, and run it:\n\n    {first}\n\nand then:\n")
    for command in later:
        click.echo(f"    {command}")


HOW = {
    "bash": 'eval "$(adbench completion bash)"     # in ~/.bashrc',
    "zsh": 'eval "$(adbench completion zsh)"      # in ~/.zshrc, after compinit',
    "fish": "adbench completion fish | source      # in ~/.config/fish/config.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(list(HOW)))
def completion(shell: str) -> None:
    """Print what makes a shell complete verbs, options, cases and backends.

    \b
    adbench completion bash
    """
    from click.shell_completion import get_completion_class

    from . import cli

    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"no completion for {shell}; there is: {', '.join(HOW)}")
    click.echo(found(cli, {}, "adbench", "_ADBENCH_COMPLETE").source())
