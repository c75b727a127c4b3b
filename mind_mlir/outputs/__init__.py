"""Outputs for others: files appear whole or not at all; what the system refuses is a diagnostic."""
