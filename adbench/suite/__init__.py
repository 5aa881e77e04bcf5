"""The harness: what is measured (case, backend), in which order (plan), where (worker, runner), what came of it."""
