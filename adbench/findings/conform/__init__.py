"""`adbench conform`: the sweep over the operations of each library."""
