"""`compile` with a cache: what is found there gives the same results, and says the same where it fails."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir import ExecutionError
from mind_mlir.cache.codes import read_code
from mind_mlir.cache.inspection import look_through
from mind_mlir.cache.store import Store
from mind_mlir.image.image import Import
from mind_mlir.target.abi import ALIGNMENT

if TYPE_CHECKING:
    from pathlib import Path

    from mind_mlir import Executable
    from mind_mlir.cache.inspection import Found
    from mind_mlir.ir.attributes import Array

PRODUCT = """
%0 = Input {name="x"} : tensor<f32[5, 7]>
%1 = Input {name="w"} : tensor<f32[7, 3]>
%2 = MatMul (%0, %1) : tensor<f32[5, 3]>
%3 = Exp (%2) : tensor<f32[5, 3]>
outputs: %3
"""
TAKEN = """
%0 = Input {name="x"} : tensor<f32[4]>
%1 = Input {name="at"} : tensor<i64[2]>
%2 = Take (%0, %1) : tensor<f32[2]>
outputs: %2
"""
ARRAYS = (
    np.linspace(-1, 1, 35, dtype=np.float32).reshape(5, 7),
    np.linspace(0, 1, 21, dtype=np.float32).reshape(7, 3),
)


def compiled(text: str, cache: Path | bool, **options: Any) -> Executable:
    executable: Executable = mind_mlir.compile(mind_mlir.parse(text), cache=cache, **options)
    return executable


def was_kept(executable: Executable) -> bool:
    return "codegen" not in executable.timings


def programs(cache: Path) -> list[Found]:
    """Return the entries of a cache but for micro-kernels."""
    return [each for each in look_through(cache) if not any("mind_" in name for name in each.functions)]


def count(cache: Path) -> int:
    return len(programs(cache))


def test_the_second_time_code_is_found(tmp_path: Path) -> None:
    first, second = (compiled(PRODUCT, tmp_path / "cache") for _ in range(2))
    assert [was_kept(each) for each in (first, second)] == [False, True]
    assert [each.tobytes() for each in second(*ARRAYS)] == [each.tobytes() for each in first(*ARRAYS)]
    assert str(second.signature()) == str(first.signature())
    assert count(tmp_path / "cache") == 1
    assert not was_kept(compiled(PRODUCT, tmp_path / "cache", opt_level=1))
    assert not was_kept(compiled(PRODUCT, tmp_path / "cache", target="sse"))
    assert count(tmp_path / "cache") == 3


def test_an_observer_sees_all_stages(tmp_path: Path) -> None:
    compiled(PRODUCT, tmp_path)
    seen: list[str] = []
    assert not was_kept(compiled(PRODUCT, tmp_path, observer=lambda stage, _: seen.append(stage)))
    assert {"core", "canonical", "llvm"} <= set(seen)


def test_without_a_cache_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIND_MLIR_CACHE_DIR", str(tmp_path / "cache"))
    assert not was_kept(compiled(PRODUCT, False))
    monkeypatch.setenv("MIND_MLIR_CACHE", "off")
    assert not was_kept(mind_mlir.compile(mind_mlir.parse(PRODUCT)))
    assert not (tmp_path / "cache").exists()
    monkeypatch.setenv("MIND_MLIR_CACHE", "on")
    mind_mlir.compile(mind_mlir.parse(PRODUCT))
    assert was_kept(mind_mlir.compile(mind_mlir.parse(PRODUCT)))


def failure(executable: Executable) -> str:
    with pytest.raises(ExecutionError) as raised:
        executable(np.ones(4, np.float32), np.array([0, 9]))
    return str(raised.value)


def test_checks_say_the_same(tmp_path: Path) -> None:
    """Equal programs of two texts call one value differently, and have it elsewhere; so do their messages."""
    texts = (TAKEN, "\n# Moved, and renamed.\n" + TAKEN.replace("%2", "%chosen"))
    expected = [failure(compiled(text, False)) for text in texts]
    assert expected[0] != expected[1]
    for _ in range(2):
        assert [failure(compiled(text, tmp_path)) for text in texts] == expected
    assert [was_kept(compiled(text, tmp_path)) for text in texts] == [True, True]


def test_constants_are_part_of_the_code(tmp_path: Path) -> None:
    """They are large enough to be imported by it, and one bit of one of them is another program."""
    module = mind_mlir.parse(PRODUCT.replace("7, 3", "7, 3000").replace("5, 3]", "5, 3000]"))
    weights = np.linspace(-1, 1, 21_000, dtype=np.float32).reshape(7, 3000)

    def run(w: Array, cache: Path | bool) -> tuple[bool, bytes]:
        executable = mind_mlir.compile(module, constants={"w": w}, cache=cache)
        return was_kept(executable), executable(ARRAYS[0])[0].tobytes()

    other = weights.copy()
    other.view(np.uint32)[3, 77] ^= 1 << 20
    plain = run(weights, False)[1]
    assert [run(weights, tmp_path) for _ in range(2)] == [(False, plain), (True, plain)]
    assert run(other, tmp_path) == (False, run(other, False)[1])


def test_functions_of_python_and_mind_are_kept(tmp_path: Path) -> None:
    def area(x: Any) -> Any:
        return (x * 3).sum()

    x = np.arange(6, dtype=np.float32)
    source = "export fn area(x: Tensor<f32, [n]>) -> f32 { sum(x * 3.0) }"
    for make in (
        lambda: mind_mlir.jit(area, cache=tmp_path / "python"),
        lambda: mind_mlir.compile(mind_mlir.parse(source, format="mind"), cache=tmp_path / "mind"),
    ):
        assert [np.asarray(make()(x)).tolist() for _ in range(2)] == [45.0, 45.0]
    assert [count(tmp_path / name) for name in ("python", "mind")] == [1, 1]


def test_what_is_broken_on_disk_is_compiled_anew(tmp_path: Path) -> None:
    expected = compiled(PRODUCT, tmp_path)(*ARRAYS)[0].tobytes()
    (found,) = programs(tmp_path)
    whole = found.file.path.read_bytes()
    for damaged in (whole[:-1], whole[:500] + b"!" + whole[501:], b""):
        found.file.path.write_bytes(damaged)
        again = compiled(PRODUCT, tmp_path)
        assert not was_kept(again)
        assert again(*ARRAYS)[0].tobytes() == expected
        assert found.file.path.read_bytes() == whole


def test_no_place_for_a_cache_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        assert not was_kept(compiled(PRODUCT, place))
    (tmp_path / "open").mkdir(mode=0o777)
    (tmp_path / "open").chmod(0o777)
    for _ in range(2):
        assert not was_kept(compiled(PRODUCT, tmp_path / "open"))
    assert list((tmp_path / "open").iterdir()) == []


@pytest.mark.parametrize("wrong", ["another program", "a function that nobody has"])
def test_whole_entries_that_are_wrong_are_compiled_anew(tmp_path: Path, wrong: str) -> None:
    """Digests tell what was changed, and nothing of what was written."""
    store = Store(tmp_path / "cache", 1 << 20)
    expected = compiled(PRODUCT, store.directory)(*ARRAYS)[0]
    (entry,) = programs(store.directory)
    if wrong == "another program":
        compiled(PRODUCT.replace("7", "6"), tmp_path / "other")
        (other,) = programs(tmp_path / "other")
        content = Store(tmp_path / "other", 1 << 20).get(other.file.key)
        assert content is not None
        store.put(entry.file.key, [content])
    else:
        content = store.get(entry.file.key)
        assert content is not None
        code = read_code(content)
        places = np.array([0], np.uint32)
        image = replace(code.image, imports=(Import("no_such_function", places),))
        store.put(entry.file.key, [bytes(ALIGNMENT), *replace(code, image=image).to_parts()])
    found = compiled(PRODUCT, store.directory)
    assert found(*ARRAYS)[0].tobytes() == expected.tobytes()
