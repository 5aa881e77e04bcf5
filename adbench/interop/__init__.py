"""Other suites and other languages: their protocols, spoken from either side."""
