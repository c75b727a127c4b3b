"""PTIR programs: what the contract says, and the formats it is written in.

program = ptir.load("model.ptir.json")
text = ptir.dumps(program, "compact")
"""

from __future__ import annotations

from mind_mlir.ptir.files import dumps, load, parse, save

__all__ = ["dumps", "load", "parse", "save"]
