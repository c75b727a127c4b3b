"""Micro-kernels are kept on disk, where there is a cache, and made anew where what is there is of no use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import mind_mlir
from mind_mlir.cache.directory import store_for
from mind_mlir.cache.inspection import look_through
from mind_mlir.cache.key import key_of_function
from mind_mlir.codegen import kernels
from mind_mlir.codegen.library import NativeCode
from mind_mlir.image.elf import is_object
from mind_mlir.mlir.bindings import new_context
from mind_mlir.target import named_target
from mind_mlir.target.abi import ALIGNMENT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mind_mlir.cache.store import Store


class _MadeKernels:
    """Counts how often kernels are made, and forgets those of the process, as another one does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch, self.count = monkeypatch, 0
        monkeypatch.setattr(kernels, "NativeCode", self._make)
        self.forget()

    def _make(self, *arguments: object, **options: object) -> NativeCode:
        self.count += 1
        return NativeCode(*arguments, **options)  # type: ignore[arg-type] # as they came

    def forget(self) -> None:
        self._monkeypatch.setattr(kernels, "_codes", {})

    def of(self, run: Callable[[], object]) -> int:
        """Return how often kernels were made in ``run``."""
        before = self.count
        run()
        return self.count - before


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> _MadeKernels:
    return _MadeKernels(monkeypatch)


def product(m: int, cache: Path | bool | None, target: str | None = None, k: int = 50) -> bytes:
    module = mind_mlir.parse(
        f'%0 = Input {{name="a"}} : tensor<f32[{m}, {k}]>\n'
        f'%1 = Input {{name="b"}} : tensor<f32[{k}, 48]>\n'
        f"%2 = MatMul (%0, %1) : tensor<f32[{m}, 48]>\noutputs: %2\n"
    )
    rng = np.random.default_rng(m)
    arrays = [rng.standard_normal(shape, np.float32) for shape in ((m, k), (k, 48))]
    executable: mind_mlir.Executable = mind_mlir.compile(module, cache=cache, target=target)
    return bytes(executable(*arrays)[0])


def store_of(folder: Path) -> Store:
    store = store_for(str(folder))
    assert store is not None
    return store


def keys_of_kernels() -> list[str]:
    codes = set(kernels._codes.values())
    found = [key_of_function(name, named_target()) for code in codes for name in code.names]
    return [key for key in found if key is not None]


def test_another_process_finds_them(tmp_path: Path, made: _MadeKernels) -> None:
    expected = [product(m, False) for m in (40, 60)]
    made.forget()
    assert made.of(lambda: product(40, tmp_path)) == 1
    made.forget()
    found: list[bytes] = []
    assert made.of(lambda: found.extend((product(60, tmp_path), product(40, tmp_path)))) == 0
    assert found == expected[::-1]


def test_without_a_cache_nothing_is_looked_for_or_kept(
    tmp_path: Path, made: _MadeKernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIND_MLIR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("MIND_MLIR_CACHE", "off")
    assert made.of(lambda: product(40, None)) == 1
    assert not (tmp_path / "cache").exists()
    made.forget()
    monkeypatch.setenv("MIND_MLIR_CACHE", "on")
    product(40, None)
    made.forget()
    assert made.of(lambda: product(60, False)) == 1


def test_kernels_of_before_are_kept_with_the_next_program(tmp_path: Path, made: _MadeKernels) -> None:
    product(40, False)
    product(60, tmp_path)
    made.forget()
    assert made.of(lambda: product(80, tmp_path)) == 0


def test_each_cache_and_each_target_has_its_own(tmp_path: Path, made: _MadeKernels) -> None:
    product(40, tmp_path / "one")
    product(60, tmp_path / "two")
    made.forget()
    assert made.of(lambda: product(80, tmp_path / "two", target="sse")) == 1
    assert made.of(lambda: product(80, tmp_path / "two")) == 0


@pytest.mark.parametrize("damage", ["cut", "changed", "a program's", "no object", "another object"])
def test_what_is_of_no_use_is_made_anew(tmp_path: Path, made: _MadeKernels, damage: str) -> None:
    product(40, tmp_path)
    keys, store = keys_of_kernels(), store_of(tmp_path)
    other = next(each.file.key for each in look_through(tmp_path) if each.functions == ("main",))
    product(40, tmp_path, k=40)
    for key in keys:
        path, data = store.path_of(key), bytearray(store.path_of(key).read_bytes())
        content = store.get(key)
        assert content is not None
        if damage == "cut":
            path.write_bytes(data[:-1])
        elif damage == "changed":
            data[-1] ^= 1
            path.write_bytes(data)
        elif damage == "a program's":
            path.write_bytes(store.path_of(other).read_bytes())
        elif damage == "no object":
            store.put(key, [bytes(ALIGNMENT), b"\x7fELF\x02\x01\x01 and no more"])
        else:
            renamed = bytes(content[ALIGNMENT:]).replace(b"mind_product", b"mind_protect")
            store.put(key, [bytes(ALIGNMENT), renamed])
    made.forget()
    assert made.of(lambda: product(60, tmp_path)) == 1
    made.forget()
    assert made.of(lambda: product(80, tmp_path)) == 0


def test_kernels_made_together_are_found_apart(tmp_path: Path, made: _MadeKernels) -> None:
    def turned(m: int) -> None:
        module = mind_mlir.parse(
            f'%0 = Input {{name="a"}} : tensor<f32[{m}, 512]>\n'
            '%1 = Input {name="b"} : tensor<f32[2048, 512]>\n'
            "%2 = Transpose (%1) {permutation=[1, 0]} : tensor<f32[512, 2048]>\n"
            f"%3 = MatMul (%0, %2) : tensor<f32[{m}, 2048]>\noutputs: %3\n"
        )
        mind_mlir.compile(module, cache=tmp_path)

    turned(600)
    (code,) = set(kernels._codes.values())
    assert len(code.names) == 2
    made.forget()
    assert made.of(lambda: turned(606)) == 0
    (found,) = set(kernels._codes.values())
    assert (sorted(found.names), found.object()) == (sorted(code.names), code.object())
    for kernel, target in list(kernels._codes):
        made.forget()
        with new_context(("llvm",)):
            kernels.begin_kernels([kernel], target, store_of(tmp_path))
    assert made.count == 1


def test_inspection_names_them(tmp_path: Path, made: _MadeKernels) -> None:
    product(40, tmp_path)
    (code,) = set(kernels._codes.values())
    (found,) = (each for each in look_through(tmp_path) if each.functions != ("main",))
    assert (found.functions, found.problem) == (code.names, None)
    content = store_of(tmp_path).get(found.file.key)
    assert content is not None
    assert is_object(content[ALIGNMENT:])
    assert made.count == 1
