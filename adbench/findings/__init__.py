"""Finding wrong derivatives without being told where: programs, their verdicts, and the smallest program that fails."""
