"""Ordinary differential equations and their sensitivities."""
