"""A recording as text, tables and a graph."""
