"""A bundle for the tests, and what they do to copies of it."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

from mind_mlir.packaging.manifest import MANIFEST, sealed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PROGRAM = """\
func @pick(%x: tensor<f32[4, 3]>, %i: tensor<i64[2]>) -> (tensor<f32[2, 3]>) {
^entry:
  %y = Gather (%x, %i) : tensor<f32[2, 3]>
  return %y
}
func @main(%x: tensor<f32[4, 3]>, %n: tensor<i32[3]>, %d: tensor<i32[]>) -> (tensor<f32[4]>, tensor<i32[3]>) {
^entry:
  %e = Exp (%x) : tensor<f32[4, 3]>
  %s = Sum (%e) {axes=[1], keepdims=false} : tensor<f32[4]>
  %q = Div (%n, %d) : tensor<i32[3]>
  return %s, %q
}
"""


def copied(bundle: Path, folder: Path) -> Path:
    """Return a fresh copy of a bundle."""
    target = folder / "copy"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(bundle, target)
    return target


def say(bundle: Path, change: Callable[[Any], object]) -> None:
    """Let the manifest of a bundle say something else, under a right digest."""
    fields = json.loads((bundle / MANIFEST).read_bytes())
    del fields["sha256"]
    change(fields)
    (bundle / MANIFEST).write_bytes(sealed(fields))
