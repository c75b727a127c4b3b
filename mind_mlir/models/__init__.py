"""Models of other frameworks as programs: each is a function of arrays, which is traced and compiled."""
