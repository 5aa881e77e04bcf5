"""Types shared by every part: case, backend, operator, job, record, events, settings, errors."""
