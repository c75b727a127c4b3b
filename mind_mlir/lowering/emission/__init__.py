"""Loops and vector operations on tensors, as all schedules emit them."""
