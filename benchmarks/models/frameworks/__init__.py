"""Families of models: how each is built. Only the process of a model imports these."""
