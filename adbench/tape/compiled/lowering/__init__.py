"""Lower a trace to an LLVM module."""
