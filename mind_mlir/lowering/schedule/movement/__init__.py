"""Schedules of operations that move elements and compute nothing."""
