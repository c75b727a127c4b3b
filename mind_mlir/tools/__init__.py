"""The command-line tools, and what they share."""
