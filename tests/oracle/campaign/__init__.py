"""Wrong backends by kind of fault, in the way libraries are wrong; what a check says about each."""
