"""Groups of columns on matrices whose best grouping is known."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csc_array

from adbench.execution.operators.colouring import groups

BANDS = np.array([[abs(i - j) <= 1 for j in range(30)] for i in range(30)])
BLOCKS = np.kron(np.eye(10), np.ones((3, 4))) > 0
ARROW = np.eye(12) + (np.arange(12) == 0)[:, None] > 0  # a full row: no two columns fit together
COLUMN = np.eye(12) + (np.arange(12) == 0)[None, :] > 0  # a full column, alone in its group


@pytest.mark.parametrize(
    ("pattern", "count"),
    [(BANDS, 3), (BLOCKS, 4), (np.eye(9) > 0, 1), (ARROW, 12), (COLUMN, 2), (np.zeros((3, 5)) > 0, 1)],
    ids=["tridiagonal", "blocks", "diagonal", "full row", "full column", "empty"],
)
def test_known_graphs_take_the_least_number_of_groups(pattern: NDArray[np.bool_], count: int) -> None:
    found = groups(csc_array(pattern))
    assert found.max() + 1 == count
    assert found.shape == (pattern.shape[1],)


@pytest.mark.parametrize("seed", range(20))
def test_no_two_columns_of_a_group_share_a_row(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pattern = rng.random((rng.integers(1, 40), rng.integers(1, 40))) < rng.uniform(0, 0.4)
    found = groups(csc_array(pattern))
    for group in range(found.max() + 1):
        assert pattern[:, found == group].sum(axis=1).max() <= 1
