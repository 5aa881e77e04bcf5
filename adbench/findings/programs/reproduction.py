"""The files of a finding: data, a script, the text of an issue, and a trap for adbench's own suite."""

from __future__ import annotations

import hashlib
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np

from adbench.findings.finding import Finding, write
from adbench.findings.scripts import literal, of_finding
from adbench.model.atomic_file import write_whole
from adbench.model.settings import PROCESSOR

SCRIPT_SECONDS = 120.0


def write_files(finding: Finding, folder: Path) -> tuple[Path, ...]:
    """Write `<name>.json`, `.py`, `.md` and `trap_<name>.py`; returns their paths. A NaN has no derivative to check, so
    that there is no trap of it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256("\0".join(finding.key).encode()).hexdigest()[:6]
    name = f"{finding.file_stem[:48].rstrip('_')}_{digest}"
    files = folder / f"{name}.json", folder / f"{name}.py", folder / f"{name}.md", folder / f"trap_{name}.py"
    text = of_finding(finding)
    write(finding, files[0])
    write_whole(files[1], text.encode())
    write_whole(files[2], issue(finding, text).encode())
    if finding.of_nan:
        return files[:3]
    write_whole(files[3], trap(finding, f"trap_{name}").encode())
    return files


def ran(file: Path) -> tuple[int, str]:
    """The exit code and the output of a script."""
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, timeout=SCRIPT_SECONDS, check=False
    )
    return done.returncode, (done.stdout + done.stderr).strip()


def issue(finding: Finding, text: str) -> str:
    """The text of an issue, in Markdown."""
    lines = [
        f"### {finding.title}", "", f"{_sentence(finding)}", "", "```python", text.rstrip(), "```", "",
        f"- got: `{finding.got}`", f"- expected: `{finding.expected}` ({finding.where or 'an answer'})",
        f"- library: {finding.library} {finding.version}",
        *([f"- device: {finding.device}"] if finding.device != PROCESSOR else []),
        f"- Python {platform.python_version()}, numpy {np.__version__}, {platform.platform()}", "",
    ]  # fmt: skip
    if finding.known:
        lines += [f"It looks like a known bug: {finding.known}", ""]
    if finding.origin:
        lines += [f"Found by `{finding.origin}`.", ""]
    return "\n".join(lines)


def _sentence(finding: Finding) -> str:
    what = f"The {finding.what} of the function below"
    return {
        "wrong": f"{what} is wrong at {finding.place}: {finding.got} instead of {finding.expected}.",
        "nan": f"{what} is {finding.got} at {finding.place}; it should be {finding.expected}.",
        "raises": f"{what} raises an exception: {finding.got}. The function itself runs.",
        "differs": f"{what} is {finding.got} at {finding.place}, but {finding.expected} by {finding.peer}.",
        "crashes": f"{what} ends the process: {finding.got}.",
        "hangs": f"{what} does not return: {finding.got}.",
    }.get(finding.kind, finding.words)


def trap(finding: Finding, name: str) -> str:
    """A case file: `adbench check -c FILE -b LIBRARY --operator OPERATOR` shows the fault."""
    program = finding.program
    inputs = ", ".join(f'"{one}": {literal(value)}' for one, value in zip(program.names, program.args, strict=True))
    wrt = "".join(f'"{program.names[k]}", ' for k in program.wrt).rstrip()
    summary = f"{' of '.join(reversed(program.operations))} at one point → {finding.expected}"
    imports = ["import numpy", ""] if "numpy." in inputs or "numpy." in program.source() else []
    lines = [
        f'"""{summary}', "", f"{finding.library} {finding.version}: {finding.operator} {finding.got}.", '"""', "",
        *imports, "from adbench import Case", "", "", program.source(name="f"), "",
        "CASE = Case(", "    f=f,", f"    inputs=lambda n, rng: {{{inputs}}},", f"    wrt=({wrt}),",
        "    sizes=(1,),", '    tags=("trap", "found"),', f'    name="{name}",', f"    summary={summary!r},", ")",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"
