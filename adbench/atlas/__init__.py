"""`adbench atlas`: which release of a library has which fault, and which release repaired it."""
