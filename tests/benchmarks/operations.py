"""Where is a peer faster? Value and gradient of every operation of `adbench conform`, compiled by us and by jax.

    python tests/benchmarks/operations.py                 the slowest of ours, relative to jax
    python tests/benchmarks/operations.py --all           every operation
    python tests/benchmarks/operations.py 'log*' softmax  of these only

Functions of numbers run on 1,000 equal numbers, others at their first random point, which is small. The result is the
sum. Both are compared first, and then timed in turns; the least of many batches counts.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

import jax
import numpy as np

from adbench import tape
from adbench.catalog.discovery import catalog, load
from adbench.findings.conform.operation_worker import own_function
from adbench.findings.conform.places import places
from adbench.findings.operations import OPERATIONS
from adbench.findings.operations.operation import ARGUMENTS, Operation
from adbench.model.backend import from_module
from tests.benchmarks.about_machine import machine
from tests.benchmarks.peers import flat, least  # which also keeps jax to one thread

COUNT, ROUNDS = 1_000, 40
SHOWN = 25
Call = Callable[[], Any]


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=["*"], metavar="NAME")
    parser.add_argument("--all", action="store_true")
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # of numbers at the edges of domains
    jax.config.update("jax_enable_x64", True)
    print("\n".join(machine()))
    names = [name for name in OPERATIONS if any(fnmatch.fnmatch(name, each) for each in given.names)]
    found, left_out = [], []
    for name in names:
        try:
            ours, theirs, notes = calls(OPERATIONS[name])
        except Exception as error:
            left_out.append(f"{name} ({type(error).__name__})")
            continue
        a, b = least({"ours": ours, "jax": theirs}, ROUNDS).values()
        found.append((b / a, name, a, b, notes))
    found.sort(key=lambda row: row[0])
    print(f"\n{'operation':36} {'ours, µs':>9} {'jax, µs':>9} {'jax ÷ ours':>11}")
    for ratio, name, a, b, notes in found if given.all else found[:SHOWN]:
        print(f"{name:36} {1e6 * a:9.1f} {1e6 * b:9.1f} {ratio:11.2f}{'  in Python' if notes else ''}")
    faster = sum(ratio < 1.0 for ratio, *_ in found)
    middle = float(np.median([ratio for ratio, *_ in found])) if found else float("nan")
    print(f"\n{len(found)} operations: jax is faster in {faster}; the median of jax ÷ ours is {middle:.1f}")
    print(f"left out, as one of the two lacks a function or both differ: {', '.join(left_out) or 'none'}")


def calls(operation: Operation) -> tuple[Call, Call, list[str]]:
    """Our call and jax's, and our notes on operations that are not native."""
    args = [np.asarray(x, float) if np.ndim(x) else float(x) for x in point_of(operation)]
    active = tuple(k for k, domain in enumerate(operation.domain[: len(args)]) if domain.active)
    ours, theirs = (namespace(name) for name in ("tape_compiled", "jax"))
    expression = operation.expression("jax")
    of_jax = own_function(expression) if expression else None

    def on_jax(*x: Any) -> Any:
        return jax.numpy.sum(
            of_jax(**dict(zip(ARGUMENTS, x, strict=False))) if of_jax else operation.definition(theirs, *x)
        )

    compiled = tape.compile(lambda *x: tape.sum(operation.definition(ours, *x)), *args, wrt=active)
    jitted = jax.jit(jax.value_and_grad(on_jax, active))
    on_device = [jax.numpy.asarray(x) for x in args]
    np.testing.assert_allclose(flat(compiled(*args)), flat(jitted(*on_device)), rtol=1e-6, atol=1e-9)
    return lambda: compiled(*args), lambda: jax.block_until_ready(jitted(*on_device)), compiled.notes


def namespace(name: str) -> Any:
    return from_module(name, load(catalog().backends[name])).xp


def point_of(operation: Operation) -> tuple[Any, ...]:
    found = next(place for place in places(operation, 0) if place.kind == "random").arguments
    return tuple(np.full(COUNT, x) for x in found) if all(np.ndim(x) == 0 for x in found) else found


if __name__ == "__main__":
    main(sys.argv[1:])
