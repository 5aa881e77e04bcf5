"""Verbs about many stored runs."""
