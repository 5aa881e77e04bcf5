"""Files for other programs: one module per format, with `render(run)`, which gives the text of the file."""
