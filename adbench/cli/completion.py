"""`adbench completion`: shell completion."""

from __future__ import annotations

import click

HOW = {
    "bash": 'eval "$(adbench completion bash)"     # in ~/.bashrc',
    "zsh": 'eval "$(adbench completion zsh)"      # in ~/.zshrc, after compinit',
    "fish": "adbench completion fish | source      # in ~/.config/fish/config.fish",
}


@click.command(short_help="Print a script for completion in your shell.")
@click.argument("shell", type=click.Choice(list(HOW)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that completes commands, options, cases and backends in your shell.

    \b
    adbench completion bash
    eval "$(adbench completion bash)"     # in ~/.bashrc; similar for zsh and fish
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"there is no completion for {shell}; choose one of {', '.join(HOW)}")
    click.echo(found(context.find_root().command, {}, "adbench", "_ADBENCH_COMPLETE").source())
