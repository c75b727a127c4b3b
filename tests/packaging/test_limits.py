"""What is packaged can be loaded: writers have the limits of loaders."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from bundles import PROGRAM

import mind_mlir
from mind_mlir import ArtefactError
from mind_mlir.image import linking
from mind_mlir.packaging import manifest, objects

if TYPE_CHECKING:
    from pathlib import Path

COUNT = 1 << 18
LARGE = f"""
%x = Input {{name="x"}} : tensor<f32[{COUNT}]>
%w = Input {{name="w"}} : tensor<f32[{COUNT}]>
%y = Add (%x, %w) : tensor<f32[{COUNT}]>
outputs: %y
"""


def refusal(program: str, path: Path, **constants: object) -> str:
    """Return what is said of a program that no bundle can hold; nothing is written."""
    with pytest.raises(ArtefactError) as raised:
        mind_mlir.package(mind_mlir.parse(program), path, threads=1, constants=constants)
    assert not path.exists()
    (found,) = raised.value.diagnostics
    assert found.code == "E6504"
    return found.message


def test_constants_beyond_any_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "MOST_BYTES", COUNT)
    assert "its constants have 1048576 bytes" in refusal(
        LARGE, tmp_path / "b", w=np.arange(COUNT, dtype="f4")
    )


def test_code_beyond_any_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking, "MOST_BYTES", 4096)
    assert "more than 4096 bytes" in refusal(PROGRAM, tmp_path / "b")


def test_a_manifest_beyond_what_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "MOST_BYTES", 100)
    assert "instead of at most 100" in refusal(PROGRAM, tmp_path / "b")
