"""Machine code by LLVM: how it is written and loaded, and the code for scalars of the eager engine."""
