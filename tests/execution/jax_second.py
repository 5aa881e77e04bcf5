"""jax on the second of two CPU devices, under the name "cuda": arrays lie elsewhere, and numbers are real.

Every argument and result must lie there.
"""

import os
from collections.abc import Callable
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import jax

from adbench import Device, Operator
from backends import jax as usual

NESTED, sync = usual.NESTED, usual.sync
xp = usual.eager_xp
DEVICES = ("cuda",)
place = {"number": 0}


def use_device(name: str) -> Device:
    place["number"] = 1
    jax.config.update("jax_default_device", jax.devices("cpu")[1])
    return Device("the second", sync)


def checked(values: Any) -> Any:
    """The values, whose arrays lie on the device."""
    device = jax.devices("cpu")[place["number"]]
    for leaf in jax.tree.leaves(values):
        if isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer):
            assert leaf.devices() == {device}, f"on {leaf.devices()}"
    return values


def to_native(leaf: Any) -> Any:
    return checked(usual.to_native(leaf))


def prepare(operator: Operator, f: Any, args: tuple[Any, ...], wrt: tuple[int, ...]) -> Callable[..., Any]:
    call = usual.eager(operator, f, args, wrt)
    return lambda *args: checked(call(*checked(args)))
