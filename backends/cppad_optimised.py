"""CppAD: one recording, optimised; made again only where a constant or the outcome of a comparison has changed."""

from .cppad import LIBRARY, to_native, to_numpy

VARIANT_OF = "cppad"
BUILDS = True

__all__ = ["prepare", "to_native", "to_numpy"]

prepare = LIBRARY.as_variant(2).prepare
