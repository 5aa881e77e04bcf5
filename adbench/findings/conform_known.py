"""Where a fault is discussed: the thread in a backend's KNOWN of a trap with the same function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from adbench.findings.conform_judge import Fault
from adbench.model.backend import known_fault
from adbench.model.case import parts_of_reason

TRAPS: Mapping[str, tuple[str, ...]] = {
    "atan2": ("trap_atan2_small", "trap_atan2_large", "trap_square_of_angle"),
    "cumprod": ("trap_cumulative_product_zero",),
    "det": ("trap_det_of_multiple_of_identity", "trap_det_singular", "trap_det_rank_zero", "log_determinant"),
    "eigvalsh": ("trap_equal_eigenvalues", "trap_large_eigenvalues"),
    "eigh_values": ("trap_equal_eigenvalues", "trap_large_eigenvalues"),
    "half_square_of_norm": ("trap_half_square_norm",),
    "hypot": ("trap_half_square_hypot",),
    "log_abs_det": ("log_determinant", "trap_log_abs_det_negative"),
    "logaddexp": ("trap_log_add_exp_far", "trap_log_add_exp_equal_large"),
    "logdet": ("log_determinant",),
    "power": ("trap_power_zero", "trap_power_mixed", "trap_zero_to_a_power", "trap_power_both"),
    "quadratic_form": ("trap_solve_unsymmetric",),
    "sinc": ("trap_second_derivative_of_sinc", "trap_sinc_near_zero"),
    "solve": ("trap_solve_unsymmetric",),
    "solve_vector": ("trap_solve_unsymmetric",),
    "scipy_solve": ("trap_solve_unsymmetric",),
    "spectral_norm": ("trap_square_of_singular_values", "trap_equal_singular_values"),
    "squares_of_eigenvectors": ("trap_eigenvector_turns", "trap_simple_eigenvector"),
    "std": ("trap_square_std_of_constant", "trap_std_of_constant"),
    "svdvals": ("trap_equal_singular_values", "trap_large_singular_values", "trap_square_of_singular_values"),
    "svd_values": ("trap_equal_singular_values", "trap_large_singular_values", "trap_square_of_singular_values"),
    "vector_norm": ("trap_norm_at_zero", "trap_half_square_norm"),
}
"""Operation -> cases with the same function."""


def with_thread(fault: Fault, known: Mapping[str, str]) -> Fault:
    """The fault with the first thread that the backend's KNOWN names for its function and operator, if any."""
    for trap in TRAPS.get(fault.operation, ()):
        found = known_fault(known, trap, fault.operator)
        if found is not None and (thread := parts_of_reason(found.reason)[2]):
            return replace(fault, thread=thread)
    return fault
