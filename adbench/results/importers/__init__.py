"""Importers of runs and timings by other programs."""
