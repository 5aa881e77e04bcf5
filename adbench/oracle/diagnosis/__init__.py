"""What a wrong result looks like, and what a program hides."""
