"""Compiled code on disk: what has been compiled once is loaded the next time, by whichever process."""
