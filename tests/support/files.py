"""Cases and backends made for one purpose, as a user would write them: files in a folder."""

import re
import subprocess
from pathlib import Path

CASE = '''"""Sum of softplus: f(x) = sum_i log(1 + exp(x_i))."""
from adbench import Case


def f(xp, x):
    return xp.sum(xp.log1p(xp.exp(x)))


CASE = Case(f=f, inputs=lambda n, rng: {"x": rng.normal(size=n)}, wrt=("x",), sizes=(1, 10, 100))
'''

RIGHT = '''"""The gradient of softplus by hand."""
import numpy as np
from adbench import Unsupported


def right(x):
    return 1 / (1 + np.exp(-x))


def prepare(operator, f, args, wrt):
    if operator == "value":
        return f
    if operator == "gradient":
        return lambda x: (right(x),)
    raise Unsupported("by hand: only value and gradient")
'''


def misbehaving(statement: str, *, where: str = "call") -> str:
    """The right backend with a statement that runs in its gradient's `call`, in `prepare`, or on `import`."""
    if where == "import":
        return f'"""Misbehaves."""\n{statement}\n' + RIGHT.partition("\n")[2]
    if where == "prepare":
        asked = '    if operator == "value":'
        return RIGHT.replace(asked, f'    if operator == "gradient":\n        {statement}\n{asked}')
    return RIGHT.replace("    return 1 / (1", f"    {statement}\n    return 1 / (1")


def write(folder: Path, **texts: str) -> Path:
    """One file for each keyword; the folder, for `--backends` or `--cases`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return folder


def git(folder: Path, *words: str) -> str:
    """What git prints in the folder, for an author without a name."""
    me = ("-c", "user.name=me", "-c", "user.email=me@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", *me, *words], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def repository(folder: Path) -> str:
    """Make a repository of the folder, with one commit of its files; the commit's hash."""
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "base")
    return git(folder, "rev-parse", "HEAD")


def without_checksums(journal: str) -> str:
    """The text of a journal as earlier versions wrote it, to change its lines."""
    return re.sub(r', "crc32": "[0-9a-f]{8}"', "", journal)
