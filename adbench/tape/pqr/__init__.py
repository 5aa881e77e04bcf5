"""Gradients attached to values, tracked gradients, and compact Jacobians, modelled on pqR."""
