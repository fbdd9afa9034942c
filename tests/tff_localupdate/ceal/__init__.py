"""Tests of tff_localupdate.ceal."""
