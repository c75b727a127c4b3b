"""Programs that come into being while something runs: functions of the surface language, or of Python."""
