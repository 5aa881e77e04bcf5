"""The case's own text at fifty and more digits: numbers, an array-API namespace over them, and what follows."""
