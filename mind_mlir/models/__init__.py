"""Models of other frameworks as programs: each is read as a function of arrays, which is traced and compiled."""
