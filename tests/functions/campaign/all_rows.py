"""All rows and their kinds."""

from dataclasses import replace
from importlib import import_module

from tests.functions.campaign.row import Row

MODULES = (
    "right.elementary",
    "right.formulations",
    "right.algebra",
    "right.arrays",
    "right.programs",
    "right.polynomials",
    "right.models",
    "right.rules",
    "right.difficult",
    "hidden",
    "planted.in_jax",
    "planted.in_torch",
    "planted.in_autograd",
    "planted.difficult",
    "fresh.elementary",
    "fresh.algebra",
    "fresh.programs",
    "fresh.layers",
    "fresh.rules",
    "fresh.siblings",
    "fresh.planted_in_jax",
    "fresh.planted_in_torch",
    "fresh.planted_in_autograd",
)

ROWS: list[Row] = [
    replace(row, module=name) for name in MODULES for row in import_module(f"tests.functions.campaign.{name}").ROWS
]
KINDS = list(dict.fromkeys(row.kind for row in ROWS))
