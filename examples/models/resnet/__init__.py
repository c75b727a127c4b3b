"""Residual networks that say what is in an image."""
