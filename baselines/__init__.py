"""The experiments: tasks, algorithms, one loop, sweeps, figures, presets."""
