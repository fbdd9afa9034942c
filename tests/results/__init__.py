"""Tests of the reader of runs."""
