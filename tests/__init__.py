"""Tests; the folders mirror the packages, see CONTRIBUTING.md."""
