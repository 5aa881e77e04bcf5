"""The table of elementwise functions: for each one its names, its domain, its limits, and its noise.

A new function needs a row here, and a series in `adbench.oracle.series.functions` or a definition by other functions.
The names of backends, the translations of users' functions, the special values and the noise of the oracle, and the
operations of `adbench conform` follow from the row. The engine's rules and the oracle's series are independent of it.
"""

from collections.abc import Iterable, Mapping

from adbench.vocabulary.row import Function, table, words
from adbench.vocabulary.rows import DERIVED, ROWS

__all__ = ["CANONICAL", "FUNCTIONS", "Function", "of_numpy", "words"]

FUNCTIONS: Mapping[str, Function] = table((*ROWS, *DERIVED))
"""Name -> function."""

CANONICAL: Mapping[str, str] = {name: row.name for row in FUNCTIONS.values() for name in row.names}
"""Any name of a function -> the name in `FUNCTIONS`."""


def of_numpy(names: Iterable[str]) -> dict[str, str]:
    """numpy's name of each function -> the name in the array API. Raises KeyError for an unknown function."""
    return {FUNCTIONS[name].numpy or name: name for name in names}
