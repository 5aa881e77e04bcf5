"""Finding wrong derivatives without being told where: every operation of a library, and random programs."""
