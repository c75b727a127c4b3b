"""Arguments of calls, checked and brought into the form that compiled code reads."""
