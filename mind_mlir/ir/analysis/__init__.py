"""Facts about modules that several passes ask for."""
