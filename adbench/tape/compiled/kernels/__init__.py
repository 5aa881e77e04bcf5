"""Native code for single operations: arithmetic, vector mathematics, LAPACK."""
