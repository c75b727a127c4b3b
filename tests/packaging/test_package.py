"""`mind_mlir.package`: programs of every kind, and what it says to arguments that are none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from bundles import PROGRAM

import mind_mlir
from mind_mlir import VerificationError

if TYPE_CHECKING:
    from pathlib import Path

FIT = """\
struct Params { w: Tensor<f32, [k]>, b: f32 }

export fn scale(p: Params, x: Tensor<f32, [n, k]>) -> Tensor<f32, [n]> {
    dot(x, p.w) + p.b
}

export fn twice(x: Tensor<f32, [n]>) -> Tensor<f32, [n]> {
    x * 2.0
}
"""


def test_structs_are_taken_apart_and_dimensions_bound(tmp_path: Path) -> None:
    program = mind_mlir.parse(FIT)
    path = mind_mlir.package(program, tmp_path / "fit", bindings={"n": 2, "k": 3}, threads=1)
    fit = mind_mlir.load_bundle(path)
    assert [list(map(str, function.parameters)) for function in fit.functions.values()] == [
        ["p.w: tensor<f32[3]>", "p.b: tensor<f32[]>", "x: tensor<f32[2, 3]>"],
        ["x: tensor<f32[2]>"],
    ]
    x, w = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([1, 0, 2], np.float32)
    (found,) = fit["scale"](**{"p.w": w, "p.b": np.float32(1), "x": x})
    assert found.tolist() == [5, 14]
    # One function alone keeps its name, and only its own dimensions have to be bound.
    path = mind_mlir.package(program, tmp_path / "two", function="twice", bindings={"n": 2}, threads=1)
    (found,) = mind_mlir.load_bundle(path)["twice"](w[:2])
    assert found.tolist() == [2, 0]
    with pytest.raises(VerificationError, match="E4303"):
        mind_mlir.package(program, tmp_path / "open")


def test_ptir_programs(tmp_path: Path) -> None:
    program = mind_mlir.languages.ptir.load("lit_tests/cli/convert.ptir")
    path = mind_mlir.package(program, tmp_path / "net", bindings={"B": 3}, threads=1)
    expected = mind_mlir.compile(program, bindings={"B": 3})
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    assert mind_mlir.load_bundle(path)(x)[0].tobytes() == expected(x)[0].tobytes()


def test_constants_become_a_part_of_the_code(tmp_path: Path) -> None:
    module = mind_mlir.parse(PROGRAM)
    x = np.ones((4, 3), np.float32)
    path = mind_mlir.package(
        module, tmp_path / "net", function=["pick"], constants={"x": x}, target="x86_64-linux"
    )
    (picked,) = mind_mlir.load_bundle(path)(np.array([0, 1]))
    assert picked.tolist() == x[:2].tolist()


def test_the_same_program_gives_the_same_bytes(tmp_path: Path) -> None:
    module = mind_mlir.parse(PROGRAM)
    (tmp_path / "again").mkdir()
    paths = [mind_mlir.package(module, folder / "net") for folder in (tmp_path, tmp_path / "again")]
    first, second = ({file.name: file.read_bytes() for file in path.iterdir()} for path in paths)
    assert first == second


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"kind": "library"}, ValueError, "kind must be one of object, shared, header, bundle, not"),
        ({"kind": 3}, TypeError, "kind must be a string"),
        ({"path": 3}, TypeError, "path must be a string or an os.PathLike"),
        ({"program": "f"}, TypeError, "program must be a Module"),
        ({"name": 3}, TypeError, "name must be a string"),
        ({"function": 3}, TypeError, "function must be a name or a sequence of names"),
        ({"function": ()}, ValueError, "function must name"),
        ({"bindings": {"n": 3}}, ValueError, "bindings"),
        ({"constants": 3}, TypeError, "constants must be a mapping"),
        ({"seed": 3}, ValueError, "seed is for PTIR programs"),
        ({"target": "z80"}, ValueError, "target must be one of native, "),
        ({"target_cpu": "z80"}, ValueError, "target_cpu must be one of native, "),
        ({"features": "avx2"}, ValueError, "features must each begin with + or -"),
        ({"threads": 0}, ValueError, "threads must be between 1 and 1024"),
        ({"opt_level": 4}, ValueError, "opt_level must be one of"),
        ({"debug": 3}, TypeError, "debug must be True or False"),
        ({"disabled_passes": ["x"]}, ValueError, "disabled_passes"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_wrong_arguments_are_named(
    options: dict[str, Any], kind: type[Exception], words: str, tmp_path: Path
) -> None:
    arguments: dict[str, Any] = {"program": mind_mlir.parse(PROGRAM), "path": tmp_path / "net", **options}
    with pytest.raises(kind) as raised:
        mind_mlir.package(**arguments)
    assert words in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_functions_that_there_are_not(tmp_path: Path) -> None:
    with pytest.raises(VerificationError, match="E2002"):
        mind_mlir.package(mind_mlir.parse(PROGRAM), tmp_path / "net", function=["pick", "no"])
    with pytest.raises(TypeError, match="path must be"):
        mind_mlir.load_bundle(b"net")
