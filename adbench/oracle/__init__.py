"""What the right answer is, and the verdict. Knows no backend."""
