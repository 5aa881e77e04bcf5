"""Made-up trees of /proc and /sys."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

CPU = "devices/system/cpu"


@dataclass(frozen=True)
class Roots:
    """The two root folders."""

    proc: Path
    sys: Path

    def write(self, **files: Mapping[str, str]) -> None:
        """`proc` and `sys`: contents by path."""
        for root, texts in files.items():
            for path, text in texts.items():
                file: Path = getattr(self, root) / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)


def roots(folder: Path) -> Roots:
    """Two empty trees."""
    made = Roots(folder / "proc", folder / "sys")
    made.proc.mkdir()
    made.sys.mkdir()
    return made


def stat(ticks: Mapping[int, tuple[int, int, int]]) -> str:
    """/proc/stat of processors with ticks (in use, idle, stolen)."""
    lines = [f"cpu{cpu} {used} 0 0 {idle} 0 0 0 {stolen} 0 0" for cpu, (used, idle, stolen) in ticks.items()]
    return "\n".join(["cpu  1 2 3 4 5 6 7 8 9 10", *lines, "intr 1 2 3", "ctxt 12"]) + "\n"
