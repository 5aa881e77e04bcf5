"""ADOL-C: one recording, made again only where a constant or the outcome of a comparison has changed."""

from .adolc import LIBRARY, build, to_native, to_numpy

VARIANT_OF = "adolc"
BUILDS = True

__all__ = ["build", "prepare", "to_native", "to_numpy"]

prepare = LIBRARY.as_variant(1).prepare
