"""ADOL-C: reuse one recording; record again only when a constant or a comparison's outcome changes."""

from .adolc import LIBRARY, build, to_native, to_numpy

VARIANT_OF = "adolc"
BUILDS = True
BATCHED = True

__all__ = ["build", "prepare", "to_native", "to_numpy"]

prepare = LIBRARY.as_variant(1).prepare
