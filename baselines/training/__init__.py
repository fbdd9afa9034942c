"""One experiment: its plan, data, loop and checkpoints."""
