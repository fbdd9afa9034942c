"""Settings: from text to a checked, frozen config, and back to a record."""
