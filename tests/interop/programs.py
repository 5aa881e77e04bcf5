"""Programs for tests: gradbench tools and workers of adbench's protocol, most of them bad."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

GOOD = """
import json, math, sys
def lse(x):
    top = max(x)
    return top + math.log(sum(math.exp(v - top) for v in x))
for line in sys.stdin:
    m = json.loads(line)
    r = {"id": m["id"]}
    if m["kind"] == "define":
        r |= {"success": m["module"] == "lse", "error": "only lse is here"}
        r["timings"] = [{"name": "tape", "nanoseconds": 2000000}]
    if m["kind"] == "evaluate":
        x = m["input"]["x"]
        gradient = [math.exp(v - lse(x)) for v in x]
        out = lse(x) if m["function"] == "primal" else gradient
        runs = [{"name": "evaluate", "nanoseconds": 5000}] * max(m["input"]["min_runs"], 1)
        r |= {"success": True, "output": out, "timings": [{"name": "sweep", "nanoseconds": 3000000}, *runs]}
    MISCHIEF
    print(json.dumps(r), flush=True)
"""

# The behaviour of bad tools on a request to evaluate.
BAD = {
    "zero": 'r["output"] = [0.0] * len(x)',
    "nothing": 'r["output"] = None',
    "shape": 'r["output"] = [1.0]',
    "texts": 'r["output"] = ["one", "two"]',
    "failing": 'r = {"id": m["id"], "success": False, "error": "out of luck"}',
    "garbage": 'print("Welcome to my tool!", flush=True)',
    "other": 'r["id"] = 99',
    "exit": "sys.exit(3)",
    "crash": "import os; os.kill(os.getpid(), 11)",
    "silent": "import time; time.sleep(3600)",
    "timeless": 'r["timings"] = []',
    "flood": 'print("x" * 5_000_000, end="", flush=True)',
}


def tool(folder: Path, mischief: str = "pass") -> str:
    """The command of a tool that has lse, and does this on a request to evaluate."""
    when = f'if m["kind"] == "evaluate":\n        {mischief}'
    return command(folder, GOOD.replace("MISCHIEF", when))


def command(folder: Path, text: str, name: str = "tool.py") -> str:
    """The command that runs this Python source."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return shlex.join([sys.executable, str(folder / name)])
