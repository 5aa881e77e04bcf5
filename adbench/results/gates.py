"""The exit code of a comparison: which findings of it are errors for `--fail-on`."""

from __future__ import annotations

from collections.abc import Collection

from adbench.model.errors import UsageError
from adbench.results.compare import ComparedCell, Comparison

GATES = ("regression", "correctness", "memory", "instructions")


def gates_of(text: str | None) -> tuple[str, ...]:
    """`regression,correctness` -> the findings that set the exit code. Raises UsageError for one not in GATES."""
    gates = tuple(dict.fromkeys(name.strip() for name in (text or "").split(","))) if text is not None else ()
    for name in gates:
        if name not in GATES:
            raise UsageError(f"--fail-on {name!r} is unknown; choose from {', '.join(GATES)}")
    return gates


def exit_code(comparison: Comparison, fail_on: Collection[str]) -> int:
    """0 no finding, 1 a derivative newly wrong or failing, 3 more time, memory or instructions, 4 nothing compared, 5
    undecided."""
    known = {key for key, sample in comparison.new.samples.items() if sample.state == "known"}
    words = {row.word for row in comparison.rows if row.key not in known}  # a known fault is no alarm
    if "correctness" in fail_on and words & {"now wrong", "now failing"}:
        return 1
    if "memory" in fail_on and any(_needs_more(row) for row in comparison.rows):
        return 3
    if "instructions" in fail_on and any(
        row.instructions and row.instructions.word == "more" for row in comparison.rows
    ):
        return 3
    if "regression" in fail_on:
        if comparison.undecided:
            return 5
        if "regression" in words:
            return 3
        if any(row.unclear for row in comparison.rows):
            return 5
    return 4 if not_compared(comparison, fail_on) else 0


def not_compared(comparison: Comparison, fail_on: Collection[str]) -> str:
    """Why a gate had nothing to compare; "" if each had something."""
    if "memory" in fail_on and not any(row.memory for row in comparison.rows):
        return "no cell has a memory figure of the same method in both runs"
    if "instructions" in fail_on and not any(row.instructions for row in comparison.rows):
        return (
            "no cell has its instructions counted in both runs by one counter; measure with adbench run --instructions"
        )
    if fail_on and not comparison.untimed and all(row.word in ("gone", "new") for row in comparison.rows):
        return "no cell was checked in both runs"
    return ""


def _needs_more(row: ComparedCell) -> bool:
    """By the method that saw more, the allocated peak or the resident one. Python's own peak misses too much."""
    fit = [change for change in row.memory if change.method != "python"]
    return bool(fit) and max(fit, key=lambda change: max(change.old_bytes, change.new_bytes)).word == "more"
