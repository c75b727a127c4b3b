"""The same program gives the same bytes at every stage, in any process, thread and order."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

import pytest

from mind_mlir import differentiate, load, print_module
from mind_mlir.lowering.pipeline import Lowering
from mind_mlir.runtime.stage_text import stage_text
from mind_mlir.support.stages import STAGES

EXAMPLES = Path(__file__).parent.parent / "examples"
PROGRAMS = ("mlp_loss", "attention", "embedding", "conv")

Dumps = dict[str, str]


def dumps(names: tuple[str, ...] = PROGRAMS) -> Dumps:
    """Return the text of every stage of the programs ``names`` and of their gradient modules."""
    found: Dumps = {}
    for name in names:
        module = load(EXAMPLES / f"{name}.ir")
        gradient = differentiate(module, extensions=True)
        found[f"{name} gradients"] = print_module(gradient.module)
        found[f"{name} gradient map"] = repr(dict(gradient.gradients))
        for kind, program in ((name, module), (f"{name} gradient", gradient.module)):
            lowering = Lowering(observer=lambda stage, text, k=kind: found.update({f"{k} {stage}": text()}))
            lowering.run(program)
            found[f"{kind} asm"] = stage_text(program, "asm")
    return found


@cache
def reference() -> Dumps:
    """Return the dumps that this process makes."""
    return dumps()


def check(found: Dumps) -> None:
    assert set(found) == set(reference())
    assert [key for key, text in found.items() if text != reference()[key]] == []


def test_every_stage_is_there() -> None:
    for name in PROGRAMS:
        for stage in [each.name for each in STAGES if not each.of_ranks]:
            assert reference()[f"{name} {stage}"]
            assert reference()[f"{name} gradient {stage}"]


def test_again_and_in_another_order() -> None:
    check(dumps(PROGRAMS[::-1]))


def test_on_another_thread() -> None:
    found: list[Dumps] = []
    threads = [threading.Thread(target=lambda: found.append(dumps())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    check(found[0])
    check(found[1])


@pytest.mark.parametrize("seed", ["0", "1", "random"])
def test_in_another_process(seed: str) -> None:
    child = subprocess.run(
        [sys.executable, __file__],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    check(json.loads(child.stdout))


if __name__ == "__main__":
    print(json.dumps(dumps()))
