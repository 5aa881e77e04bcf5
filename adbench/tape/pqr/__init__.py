"""Gradients attached to values, tracked gradients, and compact Jacobians, modelled on pqR.

A plug-in of the engine: it uses the core, and nothing of the engine imports it.
"""

from adbench.tape.pqr.compact import CompactJacobian, Dense, IdentityMultiple, LazyProduct
from adbench.tape.pqr.compact_forms import Diagonal, Implicit, Kronecker, OneInColumn, OneInRow, Scaled
from adbench.tape.pqr.compact_mode import Compact, compact_jacobian
from adbench.tape.pqr.custom_gradient import compute_gradient
from adbench.tape.pqr.tracking import Tracked, back_gradient, gradient_of, track_gradient, with_gradient

__all__ = [
    "Compact",
    "CompactJacobian",
    "Dense",
    "Diagonal",
    "IdentityMultiple",
    "Implicit",
    "Kronecker",
    "LazyProduct",
    "OneInColumn",
    "OneInRow",
    "Scaled",
    "Tracked",
    "back_gradient",
    "compact_jacobian",
    "compute_gradient",
    "gradient_of",
    "track_gradient",
    "with_gradient",
]
