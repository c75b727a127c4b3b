"""Models of other frameworks as functions of arrays that are traced and compiled, and their weights."""
