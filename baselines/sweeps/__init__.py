"""Grids of experiments that share one process."""
