"""Lowers the programs of a file, one JSON string each line, and prints what comes of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from surface_programs import reading_of

import mind_mlir
from mind_mlir.languages.mind.elaboration import lower

for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines():
    sys.stdout.write(mind_mlir.print_module(lower(reading_of(json.loads(line)))))
