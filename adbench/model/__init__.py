"""Values that every part shares: case, backend, operator, job, record, events, settings, errors."""
