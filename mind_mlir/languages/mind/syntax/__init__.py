"""The text of `.mind` programs: its tree, and what reads it."""
