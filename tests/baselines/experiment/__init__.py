"""Tests of the experiment loop."""
