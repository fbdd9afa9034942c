"""Tests of baselines.sweeps."""
