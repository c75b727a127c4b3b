"""Programs of every kind: modules of Core IR, PTIR programs and programs of the surface language."""
