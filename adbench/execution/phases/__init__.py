"""The phases of a run: check, time, memory; and the policy after failures."""
