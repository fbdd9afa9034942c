"""Figures and tables from finished run folders; needs no TensorFlow."""
