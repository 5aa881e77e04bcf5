"""Worker processes: the supervisor, the channel to each of them, and what runs inside."""
