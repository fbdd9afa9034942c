"""One experiment: its settings, its data, its loop and its records."""
