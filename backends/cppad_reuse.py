"""CppAD: reuse one recording; record again only when a constant or a comparison's outcome changes."""

from .cppad import LIBRARY, build, to_native, to_numpy

VARIANT_OF = "cppad"
BUILDS = True
BATCHED = True

__all__ = ["build", "prepare", "to_native", "to_numpy"]

prepare = LIBRARY.as_variant(1).prepare
