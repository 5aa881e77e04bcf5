"""Runs and timings that other programs wrote."""
