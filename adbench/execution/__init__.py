"""Runs a plan: workers, phases, operators, C++ builds and clusters."""
