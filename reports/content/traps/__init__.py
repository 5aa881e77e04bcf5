"""What libraries get wrong on the traps: a map of libraries and families of traps, and the reasons behind it."""
