"""Profiles: where the time of compiled code goes, by nest and thread, and what this machine could do."""
