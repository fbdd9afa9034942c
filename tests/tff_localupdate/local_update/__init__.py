"""Tests of LocalUpdate."""
