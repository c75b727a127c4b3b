"""`python -m mind_mlir` is `mind-mlir`."""

from __future__ import annotations

from mind_mlir.cli.main import main

if __name__ == "__main__":
    main()
