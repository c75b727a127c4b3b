"""Stamps in compiled code, by which a profile knows what takes the time."""
