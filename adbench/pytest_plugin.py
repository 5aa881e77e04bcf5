"""For pytest: a fixture `assert_gradients(f, *args, backend=…, wrt=…)`, there wherever adbench is installed.

def test_my_gradient(assert_gradients):
    assert_gradients(lambda xp, x: xp.sum(xp.sin(x)), np.array([0.3, 1.2]), backend="jax")
"""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture
def assert_gradients() -> Callable[..., None]:
    """`adbench.assert_gradients`; imported when it is asked for, since this file is loaded with every pytest."""
    from adbench.suite.api import assert_gradients

    return assert_gradients
