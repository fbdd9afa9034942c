"""Tests of tff_localupdate.execution."""
