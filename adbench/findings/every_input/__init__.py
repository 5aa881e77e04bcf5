"""`adbench conform --every-input`: all finite inputs of a type of 16 bits."""
