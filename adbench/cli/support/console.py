"""What is known of the terminal."""

from __future__ import annotations

import os
import shutil
import sys


def width() -> int:
    """Columns of the terminal; 100 where there is none."""
    return shutil.get_terminal_size((100, 24)).columns


def colour() -> bool:
    """Colours only on a terminal, and not where NO_COLOR is set (no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
