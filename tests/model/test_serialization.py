"""Conversion of plain data in several threads."""

import subprocess
import sys

PROGRAM = """
import sys, threading
from dataclasses import dataclass, make_dataclass
from adbench.model.serialization import converted, from_json

sys.setswitchinterval(1e-6)
for number in range(20):
    kind = int
    for depth in range(6):
        kind = make_dataclass(f"K{number}_{depth}", [("a", tuple[kind, ...]), ("b", dict[str, list[int]] | None, None)])
    start = threading.Barrier(4)
    def work():
        start.wait()
        for _ in range(5):
            converted({"a": [{"a": [{"a": []}]}]}, kind)
            from_json(b'{"a": [{"a": []}]}', kind)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""


def test_threads_may_convert_to_a_new_dataclass_at_once() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
