"""Tasks of the experiments: clients' data, model and losses by name."""
