"""What reports say about many runs."""
