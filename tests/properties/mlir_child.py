"""Reads MLIR texts, one JSON string a line, and answers what becomes of each; run as a process of its own.

The answer is ``{"accepted": true}``, or ``{"error": message}`` where the text does not parse, verify or
lower. Anything else, and the end of this process above all, is a bug.
"""

from __future__ import annotations

import json
import sys

from mind_mlir import MindError
from mind_mlir.lowering import dialect
from mind_mlir.lowering.to_linalg import to_linalg
from mind_mlir.mlir.bindings import MLIRError, ir, new_context


def answer(text: str) -> dict[str, object]:
    context = new_context()
    dialect.load(context)
    try:
        module = ir.Module.parse(text.encode("utf-8", "surrogatepass"), context)
        lowered = to_linalg(module).module
        assert lowered.operation.verify()
    except (MLIRError, MindError) as error:
        return {"error": str(error)}
    return {"accepted": True}


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
