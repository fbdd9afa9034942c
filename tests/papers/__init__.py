"""Statements of the papers, shown on whole processes."""
