"""One experiment: its folder, data, loop and records."""
