"""Worker processes: the supervisor, the channel to each of them, and the code inside."""
