"""Models of other frameworks as functions of arrays that are traced, compiled and called."""
