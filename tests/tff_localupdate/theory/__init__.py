"""Tests of the theory."""
