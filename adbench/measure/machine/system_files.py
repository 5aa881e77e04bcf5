"""Small files in which Linux tells about itself. Readers take the roots, so that tests can hand in their own trees."""

from __future__ import annotations

from pathlib import Path

PROC, SYS = Path("/proc"), Path("/sys")


def text(file: Path) -> str | None:
    """What the file says; None where there is none, or it may not be read."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def word(file: Path) -> str | None:
    """What the file says, without blanks around; None also where it says nothing."""
    return (text(file) or "").strip() or None


def number(file: Path) -> int | None:
    """The whole number that the file holds; None where it holds none."""
    found = word(file) or ""
    return int(found) if found.removeprefix("-").isdigit() else None
