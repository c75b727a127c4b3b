"""All of the compiler, loaded: processes of models are forks of one that has loaded the frameworks, too."""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages

import mind_mlir.codegen
import mind_mlir.lowering
import mind_mlir.passes

for package in (mind_mlir.passes, mind_mlir.lowering, mind_mlir.codegen):
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        import_module(module.name)
