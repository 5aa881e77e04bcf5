"""Two libraries never share a process, and no process has two copies of one runtime."""

from __future__ import annotations

import math
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

# OpenMP, oneTBB and LLVM keep state per process: two copies of one of them share symbols and conflict.
RUNTIMES = {"OpenMP": ("libgomp", "libomp", "libiomp"), "TBB": ("libtbb.", "libtbb-"), "LLVM": ("libLLVM", "libllvm")}

TELLING = (
    '"""Record the process that imports it."""\n'
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
def test_each_backend_has_separate_workers_in_checks_and_runs(tmp_path: Path) -> None:
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


def test_a_worker_refuses_a_second_backend() -> None:
    sources, bench = catalog().backends, WorkerState()
    first, second = (
        answer(bench, {"do": "load", "source": to_plain(sources[name])}) for name in ("finite_differences", "tape")
    )
    assert "value" in first
    assert "finite_differences" in second["failed"]
    assert "tape" in second["failed"]
    assert bench.backend is not None
    assert bench.backend.name == "finite_differences"


@pytest.mark.slow
def test_a_call_slower_than_the_limit_is_not_repeated_to_be_judged() -> None:
    known, worker, references = catalog(), WorkerState(), WorkerState()
    asked = {"case": to_plain(known.case_sources["matrix_product"]), "size": 8, "seed": 0, "operator": "gradient"}
    reference = {**asked, "do": "reference", "cache": None, "reference_seconds": 1.0}
    needs = {"second_order": False, "hessian": False}
    judged = {**asked, "do": "prepare", "reference": answer(references, {**reference, **needs})["value"]}
    answer(worker, {"do": "load", "source": to_plain(known.backends["tape"])})
    all_, none = (answer(worker, {**judged, "slow": seconds})["value"] for seconds in (math.inf, 0.0))
    assert all_["between_calls"] is None
    assert "between_calls" not in none
    assert none["call_seconds"] > 0
    assert answer(worker, judged)["value"]["call_seconds"] is None


def runtimes(name: str, folder: Path | None = None) -> dict[str, set[str]]:
    """Runtime kind -> files mapped by a process that has used this backend."""
    done = subprocess.run([sys.executable, "-c", USING, name], capture_output=True, text=True, check=True, cwd=folder)
    mapped = {line.split()[-1] for line in done.stdout.splitlines() if "/" in line}
    return {
        kind: {path for path in mapped if os.path.basename(path).startswith(starts)}
        for kind, starts in RUNTIMES.items()
    }


def test_jax_stays_on_the_cpu_for_any_environment() -> None:
    """A GPU build would use a GPU, and fail if $JAX_PLATFORMS names one that is missing."""
    environment = {**os.environ, "JAX_PLATFORMS": "cuda"}
    done = subprocess.run(
        [sys.executable, "-c", USING + "import jax; print([d.platform for d in jax.devices()])", "jax"],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "['cpu']"


def usable(name: str) -> bool:
    """Whether the backend's library is installed; only a separate process imports it."""
    source = catalog().backends[name]
    if source.missing:
        return False
    library: Any = getattr(load(source), "LIBRARY", None) if source.builds and not source.requires else None
    try:
        return library is None or bool(library.found())
    except Unsupported:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux lists a process's mapped files")
@pytest.mark.parametrize("name", catalog().backends)
def test_no_worker_loads_a_runtime_twice(name: str) -> None:
    if not usable(name):
        pytest.skip(f"{name}: its library is not installed")
    found = runtimes(name)
    assert not {kind: sorted(paths) for kind, paths in found.items() if len(paths) > 1}
    # The search works: it finds the TBB of Stan Math's distribution.
    if name == "stan_math":
        assert [os.path.basename(path).partition(".")[0] for path in found["TBB"]] == ["libtbb"]
    if name in ("cppad", "sacado", "adolc"):
        assert not any(found.values())
