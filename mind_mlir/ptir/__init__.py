"""PTIR programs: what the contract says, and the formats it is written in."""
