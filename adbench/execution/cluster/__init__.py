"""Runs on the hosts of a Dask cluster."""
