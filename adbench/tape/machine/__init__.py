"""Machine code by LLVM: how it is loaded, and the code for scalars of the eager engine."""
