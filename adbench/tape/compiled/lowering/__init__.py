"""From a trace to an LLVM module."""
