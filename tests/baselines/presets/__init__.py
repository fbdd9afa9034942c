"""Tests of the preset flag files."""
