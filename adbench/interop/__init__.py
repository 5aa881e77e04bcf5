"""Protocols of other suites and languages, in both directions."""
