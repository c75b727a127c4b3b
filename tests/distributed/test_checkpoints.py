"""Checkpoints: whole or not at all, read with another sharding, and by another number of processes."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from mpi_harness import launch

import mind_mlir
from mind_mlir import ArtefactError, Mesh, ShardedArray, UnsupportedError, shard
from mind_mlir.distributed import latest_step, load_checkpoint, save_checkpoint
from mind_mlir.distributed.checkpoint_parts import Plan

if TYPE_CHECKING:
    from pathlib import Path

MESH = Mesh("data=2,model=4")
WHOLE = np.arange(96, dtype=np.float32).reshape(8, 12)


class Moments(NamedTuple):
    first: Any
    second: Any


def tree() -> dict[str, Any]:
    bf16 = mind_mlir.DType.BF16.numpy
    return {
        "w": shard(WHOLE, MESH, "model,data"),
        "moments": Moments(np.ones((2, 3), bf16), [np.full(3, 1j), None, ()]),
        "dense/kernel": np.zeros((0, 3), ">f8"),
        "numbers": (2**70, True, -0.5, math.inf, 1 - 2j),
        "narrow": np.arange(-8, 8).astype(mind_mlir.DType.SI4.numpy),
        "scalar": np.float32(3),
    }


def test_what_is_saved_is_what_is_loaded(tmp_path: Path) -> None:
    given = tree()
    save_checkpoint(tmp_path / "a" / "b", given, step=7)
    step, found = load_checkpoint(tmp_path / "a" / "b")
    assert step == 7
    assert list(found) == list(given)
    assert found["numbers"] == given["numbers"]
    assert [type(each) for each in found["numbers"]] == [int, bool, float, float, complex]
    assert found["moments"]["second"][1:] == [None, ()]
    assert found["dense/kernel"].shape == (0, 3)
    for one, other in ((found["w"], WHOLE), (found["narrow"], given["narrow"]), (found["scalar"], 3)):
        np.testing.assert_array_equal(one, other)
    assert found["moments"]["first"].dtype == given["moments"].first.dtype
    assert found["narrow"].dtype == given["narrow"].dtype


@pytest.mark.parametrize(("mesh", "spec"), [("x=3", "*,x"), ("x=2,y=4", "y,x"), ("x=4", ""), ("x=8", "x")])
def test_a_checkpoint_is_read_in_another_sharding(tmp_path: Path, mesh: str, spec: str) -> None:
    save_checkpoint(tmp_path, tree(), step=0)
    like = tree() | {"w": shard(np.zeros_like(WHOLE), Mesh(mesh), spec)}
    found = load_checkpoint(tmp_path, like).tree
    assert isinstance(found["moments"], Moments)
    assert isinstance(found["w"], ShardedArray)
    for rank, part in shard(WHOLE, Mesh(mesh), spec).parts.items():
        np.testing.assert_array_equal(found["w"].parts[rank], part)


def test_each_shard_is_written_once(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, shard(np.zeros(1024, np.float32), MESH, "data"), step=0)
    size = (tmp_path / "step-0" / "process-0.safetensors").stat().st_size
    assert 4096 < size < 4096 + 512
    names = mind_mlir.load_weights(tmp_path / "step-0" / "process-0.safetensors")
    assert list(names) == ["tree[0:512]", "tree[512:1024]"]


def test_the_last_checkpoint_is_loaded_and_others_go(tmp_path: Path) -> None:
    assert latest_step(tmp_path / "none") is None
    for step in (1, 9, 10):
        save_checkpoint(tmp_path, np.full(3, step), step=step)
    assert latest_step(tmp_path) == 10
    assert load_checkpoint(tmp_path).tree[0] == 10
    assert load_checkpoint(tmp_path, step=9).tree[0] == 9
    save_checkpoint(tmp_path, np.full(3, 11), step=2, keep=2)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["step-10", "step-2"]
    save_checkpoint(tmp_path, np.full(3, 12), step=2, keep=2)
    assert load_checkpoint(tmp_path, step=2).tree[0] == 12
    assert sorted(each.name for each in tmp_path.iterdir()) == ["step-10", "step-2"]


def test_no_damage_goes_unseen(tmp_path: Path) -> None:
    given = {"w": shard(np.arange(8.0), Mesh("x=2"), "x"), "n": 3}
    save_checkpoint(tmp_path, given, step=0)
    for file in (tmp_path / "step-0").iterdir():
        whole = file.read_bytes()
        for place in range(0, len(whole), 3):
            file.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << place % 8)]) + whole[place + 1 :])
            _is_told_or_harmless(tmp_path)
            if place % 7 == 0:
                file.write_bytes(whole[:place])
                _is_told_or_harmless(tmp_path)
        file.unlink()
        _is_told_or_harmless(tmp_path)
        file.write_bytes(whole)
    np.testing.assert_array_equal(load_checkpoint(tmp_path).tree["w"], np.arange(8.0))


def _is_told_or_harmless(folder: Path) -> None:
    try:
        found = load_checkpoint(folder).tree
    except ArtefactError as error:
        code = error.code
    else:  # spaces of a header may be others
        code = "E6507"
        assert found["n"] == 3
        np.testing.assert_array_equal(found["w"], np.arange(8.0))
    assert code == "E6507"


@pytest.mark.parametrize(
    ("like", "words"),
    [
        ({"a": np.zeros(3)}, "only the checkpoint has tree.b"),
        ({"a": np.zeros(3), "b": 1, "c": 1, "d": 1}, "only like has tree.c and 1 more"),
        ({"a": np.zeros(4), "b": 1}, "tree.a is f64[3] there, and f64[4] in like"),
        ({"a": np.zeros(3, np.int32), "b": 1}, "tree.a is f64[3] there, and i32[3] in like"),
        ({"a": 1, "b": 1}, "tree.a is f64[3] there, and a number in like"),
        ({"a": np.zeros(3), "b": np.zeros(())}, "tree.b is a number there, and f64[] in like"),
    ],
)
def test_another_tree_is_told(tmp_path: Path, like: Any, words: str) -> None:
    save_checkpoint(tmp_path, {"a": np.zeros(3), "b": 1}, step=0)
    with pytest.raises(ArtefactError, match="E6508") as caught:
        load_checkpoint(tmp_path, like)
    assert words in str(caught.value)


def test_wrong_arguments_are_told(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match="there is none"):
        load_checkpoint(tmp_path)
    with pytest.raises(ArtefactError, match="there is none"):
        load_checkpoint(tmp_path, step=3)
    with pytest.raises(TypeError, match=r"tree.a must be a number or an array \(it is a text\)"):
        save_checkpoint(tmp_path, {"a": "x"}, step=0)
    with pytest.raises(ValueError, match=r"tree.0 has elements of type object"):
        save_checkpoint(tmp_path, [np.array([{}])], step=0)
    with pytest.raises(ValueError, match="keep must be at least 1"):
        save_checkpoint(tmp_path, 1, step=0, keep=0)
    with pytest.raises(ValueError, match="step must be at least 0"):
        save_checkpoint(tmp_path, 1, step=-1)
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").write_text("")
    with pytest.raises(UnsupportedError, match="E7101"):
        save_checkpoint(tmp_path / "file", 1, step=0)


def test_what_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_checkpoint(tmp_path, 1, step=0)

    def full(plan: Plan, folder: Path) -> dict[str, str]:
        (folder / "half").write_text("")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Plan, "write", full)
    with pytest.raises(UnsupportedError, match="No space left on device"):
        save_checkpoint(tmp_path, 2, step=0)
    assert [each.name for each in tmp_path.iterdir()] == ["step-0"]
    assert load_checkpoint(tmp_path).tree == 1


SAVE = """
import itertools, sys
import numpy as np
from mind_mlir.distributed import save_checkpoint
for step in itertools.count(int(sys.argv[2])):
    save_checkpoint(sys.argv[1], {"a": np.full(20000, step), "b": step}, step=step, keep=1)
    print(step, flush=True)
"""


def test_readers_find_a_whole_checkpoint_whoever_is_killed_meanwhile(tmp_path: Path) -> None:
    random, saved = np.random.default_rng(0), 0
    for _ in range(4):
        child = subprocess.Popen(
            [sys.executable, "-c", SAVE, str(tmp_path), str(saved)], stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        child.stdout.readline()
        end = time.monotonic() + random.uniform(0.02, 0.15)
        while time.monotonic() < end:
            saved = _load_whole(tmp_path, saved)
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        saved = _load_whole(tmp_path, saved)
    save_checkpoint(tmp_path, {"a": np.full(20000, 0), "b": 0}, step=saved + 1, keep=1)
    assert [each.name for each in tmp_path.iterdir()] == [f"step-{saved + 1}"]


def _load_whole(folder: Path, least: int) -> int:
    step, found = load_checkpoint(folder)
    assert step >= least
    assert found["b"] == step
    assert (found["a"] == step).all()
    return step


TWO = """
import sys
import numpy as np
from mind_mlir import Mesh, shard
from mind_mlir.distributed import load_checkpoint, process_index, save_checkpoint
from mind_mlir.distributed.checkpoint_parts import Plan
from mind_mlir.ir.mesh import Mesh
folder, me = sys.argv[1], process_index()
whole = np.arange(32.0).reshape(4, 8)
mesh = Mesh("x=4")
given = {"w": shard(whole, mesh, "x"), "v": np.ones(100), "u": np.zeros(100)}
save_checkpoint(folder, given, step=1)
other = given | {"w": shard(whole * 0, Mesh("y=2"), "*,y")}
found = load_checkpoint(folder, other).tree
assert (found["w"].parts[me] == whole[:, 4 * me : 4 * me + 4]).all()
assert (load_checkpoint(folder).tree["w"] == whole).all()
def tell(what):
    try:
        what()
    except Exception as error:
        sys.stdout.write(f"{me}: {str(error).splitlines()[0]}\\n")
        sys.stdout.flush()
tell(lambda: save_checkpoint(folder, given | {"n": me}, step=2))
write = Plan.write
def full(plan, place):
    if me == 1:
        raise OSError(28, "No space left on device")
    return write(plan, place)
Plan.write = full
tell(lambda: save_checkpoint(folder, given, step=2))
"""


def test_two_processes_save_and_one_loads(tmp_path: Path) -> None:
    program, folder = tmp_path / "two.py", tmp_path / "saved"
    program.write_text(TWO)
    done = launch(2, str(program), str(folder))
    assert done.returncode == 0, done.stderr
    for process, where in ((0, " (in process 1)"), (1, "")):
        assert f"{process}: error[E6202]: the processes save different checkpoints" in done.stdout
        assert f"No space left on device{where}\n" in done.stdout
    assert [each.name for each in folder.iterdir()] == ["step-1"]
    files = sorted((folder / "step-1").iterdir())
    assert [each.name for each in files] == [
        "manifest.json",
        "process-0.safetensors",
        "process-1.safetensors",
    ]
    assert abs(files[1].stat().st_size - files[2].stat().st_size) < 64
    np.testing.assert_array_equal(load_checkpoint(folder).tree["w"], np.arange(32.0).reshape(4, 8))
