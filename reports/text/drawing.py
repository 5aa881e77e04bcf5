"""Rich's renderables as text of a given width."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.text import Text

NARROWEST = 16  # columns; below, nothing can be read anyway


def printed(parts: Iterable[RenderableType], *, width: int, colour: bool = False) -> str:
    """The parts one below the other, without blanks at the ends of lines; the text ends in a newline."""
    console = Console(
        width=max(width, NARROWEST),
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        markup=False,  # a backend called [red] is called [red]
        emoji=False,
        highlight=False,
    )
    with console.capture() as captured:
        for part in parts:
            # The console would forget that a text is one line, however long.
            console.print(part, soft_wrap=isinstance(part, Text) and bool(part.no_wrap))
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"
