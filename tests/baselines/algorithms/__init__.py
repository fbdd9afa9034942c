"""Tests of baselines.algorithms."""
