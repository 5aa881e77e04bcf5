"""`adbench doctor` for people: the findings, and for each warning why it matters and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from adbench.doctor.examine import Examination
from adbench.doctor.findings import MachineFinding

from .drawing import printed

SIGNS = {"ok": ("✓", "green"), "warning": ("!", "bold yellow"), "unknown": ("—", "dim")}


def text(found: Examination, *, width: int, colour: bool) -> str:
    """The examination as text, no line longer than `width` but for commands that have no blank to break at."""
    return printed(_parts(found), width=width, colour=colour)


def _parts(found: Examination) -> Iterable[RenderableType]:
    facts = found.facts
    gigabytes = f"{(facts.get('memory_bytes') or 0) / 2**30:.3g} GiB"  # type: ignore[operator]
    yield f"{facts.get('processor')}, {facts.get('cores') or '—'} cores, {gigabytes}; {facts.get('system')}"
    yield "; ".join(str(facts[name]) for name in ("python", "libc", "compiler") if facts.get(name))
    yield ", ".join(f"{name} {version}" for name, version in found.versions.items() if version)
    yield ""
    yield _findings(found.findings)
    if found.memory is not None:
        yield ""
        yield "Memory: MB measured for a known amount; in brackets where a method cannot see it"
        yield _findings(found.memory)
    if found.rates is not None:
        yield ""
        yield "The device, by library"
        yield _findings(found.rates)
    yield ""
    count = sum(finding.state == "warning" for finding in (*found.findings, *(found.memory or ())))
    yield f"{count or 'no'} warning{'' if count == 1 else 's'}; nothing was changed"


def _findings(findings: Sequence[MachineFinding]) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column()
    table.add_column(no_wrap=True)
    table.add_column(ratio=1, overflow="fold")
    for finding in findings:
        sign, style = SIGNS[finding.state]
        said = Text(finding.found)
        if finding.state == "warning":
            said.append(f"\n{finding.why}", style="dim")
        if finding.do:
            said.append(f"\n→ {finding.do}")
        table.add_row(Text(sign, style=style), Text(finding.name), said)
    return table
