"""A site of static pages from many runs: `adbench publish`."""
