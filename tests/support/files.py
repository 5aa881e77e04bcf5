"""Cases and backends made for one purpose, as a user would write them: files in a folder."""

import re
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


def without_checksums(journal: str) -> str:
    """The text of a journal as earlier versions wrote it, to change its lines."""
    return re.sub(r', "crc32": "[0-9a-f]{8}"', "", journal)
