"""From a selection to a list of jobs, and how long they take."""
