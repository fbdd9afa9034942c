"""Tests of tff_localupdate.compression."""
