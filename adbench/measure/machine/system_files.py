"""Small files in which Linux describes itself. Readers take the root folders, so that tests can use others."""

from __future__ import annotations

from pathlib import Path

PROC, SYS = Path("/proc"), Path("/sys")


def text(file: Path) -> str | None:
    """The content of a file; None if it cannot be read."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def word(file: Path) -> str | None:
    """The stripped content; None also for an empty file."""
    return (text(file) or "").strip() or None


def number(file: Path) -> int | None:
    """The integer in a file, or None."""
    digits = word(file) or ""
    return int(digits) if digits.removeprefix("-").isdigit() else None


def fields(file: Path) -> dict[str, str]:
    """The lines `name: value` of a file; of lines with one name, the first counts."""
    lines = (line.partition(":") for line in reversed((text(file) or "").splitlines()))
    return {name.strip(): value.strip() for name, _, value in lines}


def processor_ticks(proc: Path) -> dict[int, list[int]]:
    """By processor, ticks since the start (proc_stat(5)): user, nice, system, idle, iowait, irq, softirq, steal, …"""
    lines = (line.split() for line in (text(proc / "stat") or "").splitlines() if line.startswith("cpu"))
    return {int(name.removeprefix("cpu")): [*map(int, counts)] for name, *counts in lines if name != "cpu"}
