"""One line on stderr that says how far a long command is."""

from __future__ import annotations

import shutil
import sys
from time import monotonic

LOG_SECONDS = 30.0  # between two lines where stderr is no terminal, such as the log of CI


class StatusLine:
    """On a terminal the line is rewritten, elsewhere there is another at most every half minute."""

    def __init__(self) -> None:
        self._rewritten = sys.stderr.isatty()
        self._last = monotonic()

    def show(self, text: str) -> None:
        """Show this text, if it is time for it."""
        if self._rewritten:
            text = text[: shutil.get_terminal_size().columns - 1]  # a wrapped line cannot be rewritten
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        elif monotonic() - self._last > LOG_SECONDS:
            self._last = monotonic()
            print(f"adbench: {text}", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Clear the line."""
        if self._rewritten:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
