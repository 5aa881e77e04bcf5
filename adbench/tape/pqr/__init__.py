"""Gradients attached to values, tracked gradients and compact Jacobians, after pqR."""
