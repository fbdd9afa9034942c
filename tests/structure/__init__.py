"""Tests of the repository itself: layout, imports, lock, BUILD."""
