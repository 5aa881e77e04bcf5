"""Text for terminals, files and other programs."""
