"""One run: its folder, its data, its loop."""
