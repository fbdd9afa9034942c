"""Tests of baselines.figures."""
