"""Algorithms that the driver can run: a registry and one adapter for each."""
