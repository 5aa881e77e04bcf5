"""The harness: what is measured (case, backend), in which order (plan), where (worker, runner) and what came out (record, store)."""
