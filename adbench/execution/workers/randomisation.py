"""What is drawn anew for each launch, and the order in which cells take turns.

Where a process's code and data lie in memory moves its times by a per cent or so, the same way all its life: an
interval over rounds of one process is too narrow, and tells two copies of one library apart. So each launch draws
another layout (Mytkowicz et al., "Producing wrong data without doing anything obviously wrong!").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from adbench.execution.workers.process import Start

MOST_ENVIRONMENT_BYTES = 4096  # a page: moves the stack by any offset in it
MOST_HEAP_BYTES = 2**16  # below the allocator's threshold for blocks of their own, so that it moves what comes after


@dataclass(frozen=True, order=True)
class WorkerKey:
    """Whose worker it is; the reference backend has a second one, the control."""

    backend: str
    control: bool = False


@dataclass(frozen=True)
class Layout:
    """One launch: how each worker is started, in the order of starting; the places of the groups in their order."""

    starts: Mapping[WorkerKey, Start]
    groups: tuple[int, ...]


def layout(seed: int, number: int, keys: Sequence[WorkerKey], groups: int, environment: Mapping[str, str]) -> Layout:
    """The layout of launch `number`: the same for the same arguments, another for another launch.

    Each worker gets `environment`, a hash seed, and paddings of its environment and heap of its own.
    """
    rng = np.random.default_rng([seed, number])
    starts: dict[WorkerKey, Start] = {}
    for key in (sorted(keys)[i] for i in rng.permutation(len(keys))):
        drawn = {
            "PYTHONHASHSEED": str(rng.integers(1, 2**32)),
            "ADBENCH_PADDING": "x" * int(rng.integers(MOST_ENVIRONMENT_BYTES)),
        }
        starts[key] = Start(dict(environment) | drawn, int(rng.integers(MOST_HEAP_BYTES)))
    return Layout(starts, tuple(int(i) for i in rng.permutation(groups)))


def turns(cells: int, number: int) -> tuple[int, ...]:
    """The order of the cells in round `number`: a row of a Latin square in which each follows each equally often.

    E. J. Williams, "Experimental designs balanced for the estimation of residual effects of treatments" (1949): for an
    even number of cells after as many rounds, for an odd one after twice as many.
    """
    first = [-(i // 2) % cells if i % 2 == 0 else i // 2 + 1 for i in range(cells)]
    shift = number % cells
    row = tuple((cell + shift) % cells for cell in first)
    mirrored = cells % 2 and (number // cells) % 2
    return row[::-1] if mirrored else row
