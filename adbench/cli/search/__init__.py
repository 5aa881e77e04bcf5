"""The verbs that search for wrong derivatives with random programs."""
