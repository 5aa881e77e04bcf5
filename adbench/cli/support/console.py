"""The terminal, and what is printed there."""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import Any

import click


def width() -> int:
    """Columns of the terminal; 100 without one."""
    return shutil.get_terminal_size((100, 24)).columns


def colour() -> bool:
    """Whether to use colours: on a terminal, unless NO_COLOR is set (no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def say(text: str) -> None:
    """Print a line of adbench's own on stderr: results alone go to stdout."""
    click.echo(f"adbench: {text}", err=True)


def print_json(data: Any) -> None:
    """Print plain data as JSON."""
    click.echo(json.dumps(data, indent=1))
