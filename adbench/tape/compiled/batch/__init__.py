"""Many points in one call: one point in each SIMD lane, or one after the other in machine code."""
