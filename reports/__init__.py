"""From a run (adbench.suite.record.Run) to what people read: one file per form. Nothing here measures."""
