"""What rich draws, as text of a given width."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

NARROWEST = 16  # columns; below, nothing can be read anyway


def printed(parts: Iterable[RenderableType], *, width: int, colour: bool = False) -> str:
    """These, one below the other."""

    def draw(console: Console) -> None:
        for part in parts:
            console.print(part)

    return drawn(draw, width=width, colour=colour)


def drawn(draw: Callable[[Console], None], *, width: int, colour: bool = False) -> str:
    """What `draw` prints to a console, without blanks at the ends of lines; it ends in a newline."""
    from rich.console import Console

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
        draw(console)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"
