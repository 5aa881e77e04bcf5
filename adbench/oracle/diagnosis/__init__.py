"""What a wrong result looks like."""
