"""Gradients attached to values, tracked gradients, and compact Jacobians, modelled on pqR.

A plug-in of the engine: it uses the core, and nothing of the engine imports it.
"""

# ruff: noqa: F401  # what is imported is public

from adbench.tape.pqr.compact import CompactJacobian, Dense, IdentityMultiple, LazyProduct
from adbench.tape.pqr.compact_forms import Diagonal, Implicit, Kronecker, OneInColumn, OneInRow, Scaled
from adbench.tape.pqr.compact_mode import Compact, compact_jacobian
from adbench.tape.pqr.custom_gradient import compute_gradient
from adbench.tape.pqr.tracking import Tracked, back_gradient, gradient_of, track_gradient, with_gradient
