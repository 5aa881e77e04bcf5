"""The randomisation of each launch, and the order in which cells alternate.

The location of a process's code and data in memory changes its times by about one per cent for its whole life. So an
interval over rounds of one process is too narrow: it finds two copies of one library different. Therefore each launch
randomises the layout (Mytkowicz et al., "Producing wrong data without doing anything obviously wrong!").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from adbench.execution.workers.process import WorkerStart

MOST_ENVIRONMENT_BYTES = 4096  # a page: shifts the stack by any offset within it
MOST_HEAP_BYTES = 2**16  # below the allocator's mmap threshold, so that it shifts later blocks


@dataclass(frozen=True, order=True)
class WorkerKey:
    """The backend of a worker, and its number of threads (Job.threads); the reference backend has a second worker, the
    control."""

    backend: str
    control: bool = False
    threads: int = 0


@dataclass(frozen=True)
class Randomisation:
    """One launch: the starts of the workers, in order, and the order of the groups (their indices)."""

    starts: Mapping[WorkerKey, WorkerStart]
    groups: tuple[int, ...]


def randomise(seed: int, number: int, keys: Sequence[WorkerKey], groups: int) -> Randomisation:
    """The randomisation of launch `number`: the same for the same arguments, different for another launch.

    Each worker gets its own hash seed and paddings of environment and heap.
    """
    rng = np.random.default_rng([seed, number])
    starts: dict[WorkerKey, WorkerStart] = {}
    for key in (sorted(keys)[i] for i in rng.permutation(len(keys))):
        drawn = {
            "PYTHONHASHSEED": str(rng.integers(1, 2**32)),
            "ADBENCH_PADDING": "x" * int(rng.integers(MOST_ENVIRONMENT_BYTES)),
        }
        starts[key] = WorkerStart(drawn, int(rng.integers(MOST_HEAP_BYTES)))
    return Randomisation(starts, tuple(int(i) for i in rng.permutation(groups)))


def turns(cells: int, number: int) -> tuple[int, ...]:
    """The order of the cells in round `number`: a row of a Latin square in which every cell follows every other equally
    often.

    E. J. Williams, "Experimental designs balanced for the estimation of residual effects of treatments" (1949):
    balanced after as many rounds as cells for an even number of cells, after twice as many for an odd one.
    """
    first = [-(i // 2) % cells if i % 2 == 0 else i // 2 + 1 for i in range(cells)]
    shift = number % cells
    row = tuple((cell + shift) % cells for cell in first)
    mirrored = cells % 2 and (number // cells) % 2
    return row[::-1] if mirrored else row
