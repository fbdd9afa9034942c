"""Tests that need a GPU; run by name, skipped elsewhere."""
