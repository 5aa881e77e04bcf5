"""Two libraries never share a process, and none brings two copies of one runtime into its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from adbench.catalog.discovery import catalog, load
from adbench.execution.session import prepare
from adbench.execution.workers.worker import WorkerState, answer
from adbench.model.errors import Unsupported
from adbench.model.serialization import to_plain
from tests.support import files

# OpenMP, oneTBB and LLVM keep the state of a whole process: two copies of one of them share its symbols, and fight.
RUNTIMES = {"OpenMP": ("libgomp", "libomp", "libiomp"), "TBB": ("libtbb.", "libtbb-"), "LLVM": ("libLLVM", "libllvm")}

TELLING = (
    '"""Tells in which process it was imported."""\n'
    "import os, pathlib\n"
    "with (pathlib.Path(__file__).parent / 'seen').open('a') as seen:\n"
    "    seen.write(f'{os.getpid()} {pathlib.Path(__file__).stem}\\n')\n"
)

USING = """
import sys
from adbench.catalog import discovery as catalog
from adbench.model.case import function_of
from adbench.model.backend import from_module
from adbench.model.errors import Unsupported
name = sys.argv[1]
known = catalog.catalog()
used = from_module(name, catalog.load(known.backends[name]))
case = known.cases[sorted(used.functions)[0] if used.functions else "product_plus_constant"]
names, args, wrt = case.bind(case.sizes[0], 0)
given = used.native_inputs(args)
try:
    used.prepare("gradient", used.function(case, names), given, wrt)(*given)
except Unsupported:
    used.prepare("value", used.function(case, names), given, wrt)(*given)
print(open("/proc/self/maps").read())
"""


@pytest.mark.slow
def test_each_backend_has_workers_of_its_own_in_a_check_and_in_a_run(tmp_path: Path) -> None:
    text = TELLING + files.RIGHT.partition("\n")[2]
    folder = files.write(tmp_path, first=text, second=text)
    case = files.write(tmp_path / "cases", softplus=files.CASE) / "softplus.py"
    given = {"cases": [str(case)], "backends": [str(folder / f"{name}.py") for name in ("first", "second")]}
    run = {"quick": True, "sizes": ["1"], "operators": ["gradient"], "launches": 1, "reference": "first"}
    for more in ({"time": False}, run):
        session = prepare(**given, memory=False, **more)  # type: ignore[arg-type]
        for _ in session.events():
            pass
        assert {record.status for record in session.result().records} <= {"ok", "unsupported"}
    imported = [line.split() for line in (folder / "seen").read_text(encoding="utf-8").splitlines()]
    assert {name for _, name in imported} == {"first", "second"}
    assert max(Counter(pid for pid, _ in imported).values()) == 1


def test_a_worker_takes_no_second_backend() -> None:
    sources, bench = catalog().backends, WorkerState()
    first, second = (
        answer(bench, {"do": "load", "source": to_plain(sources[name])}) for name in ("finite_differences", "tape")
    )
    assert "value" in first
    assert "this worker has finite_differences already: tape needs a worker of its own" in second["failed"]
    assert bench.backend is not None
    assert bench.backend.name == "finite_differences"


def runtimes(name: str, folder: Path | None = None) -> dict[str, set[str]]:
    """The files of each kind of runtime that a process maps which has differentiated something by this backend."""
    done = subprocess.run([sys.executable, "-c", USING, name], capture_output=True, text=True, check=True, cwd=folder)
    mapped = {line.split()[-1] for line in done.stdout.splitlines() if "/" in line}
    return {
        kind: {path for path in mapped if os.path.basename(path).startswith(starts)}
        for kind, starts in RUNTIMES.items()
    }


def test_jax_stays_on_the_processor_whatever_the_environment_asks_for() -> None:
    """A build for GPUs takes one that is there; where $JAX_PLATFORMS wants one that is not, nothing would run."""
    environment = {**os.environ, "JAX_PLATFORMS": "cuda"}
    done = subprocess.run(
        [sys.executable, "-c", USING + "import jax; print([d.platform for d in jax.devices()])", "jax"],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "['cpu']"


def usable(name: str) -> bool:
    """Whether the backend's library is there; its import is left to a process of its own."""
    source = catalog().backends[name]
    if source.missing:
        return False
    library: Any = getattr(load(source), "LIBRARY", None) if source.builds and not source.requires else None
    try:
        return library is None or bool(library.found())
    except Unsupported:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux tells what a process has mapped")
@pytest.mark.parametrize("name", catalog().backends)
def test_no_library_brings_a_runtime_twice_into_its_worker(name: str) -> None:
    if not usable(name):
        pytest.skip(f"{name}: its library is not installed")
    found = runtimes(name)
    assert not {kind: sorted(paths) for kind, paths in found.items() if len(paths) > 1}
    # That which is sought is there to be found: Stan Math's TBB is that of its own distribution.
    if name == "stan_math":
        assert [os.path.basename(path).partition(".")[0] for path in found["TBB"]] == ["libtbb"]
    if name in ("cppad", "sacado", "adolc"):
        assert not any(found.values())
