"""Proved bounds of many numbers: arrays of enclosures, recorded for gradients."""
