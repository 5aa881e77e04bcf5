"""Fixtures of the tests of users' functions."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def own_defaults() -> Any:
    """jax and torch with users' defaults: in single precision."""
    import jax
    import torch

    before = jax.config.jax_enable_x64, torch.get_default_dtype()
    jax.config.update("jax_enable_x64", False)
    torch.set_default_dtype(torch.float32)
    yield
    jax.config.update("jax_enable_x64", before[0])
    torch.set_default_dtype(before[1])
