"""PTIR programs: what the contract says, and the formats it is written in.

    program = mind_mlir.ptir.load("model.ptir.json")
    text = mind_mlir.ptir.dumps(program, "compact")

`program` has the data; `docs/ptir-formats.md` describes the formats.
"""

from __future__ import annotations

from mind_mlir.languages.ptir.files import dumps, load, parse, save

__all__ = ["dumps", "load", "parse", "save"]
