"""Files for other programs: one module per format, with `render(run)`, which gives the text of the file.

A module whose format cannot hold everything also has `left_out(run)`: a sentence with counts, or None.
"""
