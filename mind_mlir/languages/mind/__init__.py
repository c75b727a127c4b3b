"""The surface language: `.mind` programs, read, checked and lowered to Core IR."""
