"""From a run (adbench.model.record.Run) to what people read: one file per form. Nothing here measures."""
