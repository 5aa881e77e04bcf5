"""Pictures as SVG text: plots of a run, and expression graphs."""
