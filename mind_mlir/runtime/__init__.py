"""Running compiled code from Python."""
