"""Programs and modules in other forms, and services around that (ptir-v0.4.md, Conversion infrastructure)."""
