"""Contractions: what is one, its schedule, packed panels and the register tile."""
