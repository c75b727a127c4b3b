"""Random programs of the surface language: formatted, read again, lowered, compiled."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from budget import examples
from counted import compile_counted
from hypothesis import given, settings
from hypothesis import strategies as st
from mangling import comments, mangled, shape
from surface_programs import Generated, reading_of, surface_programs

import mind_mlir
from mind_mlir.diagnostics import SourceText
from mind_mlir.ir.types import DType
from mind_mlir.languages.mind.elaboration import lower
from mind_mlir.languages.mind.formatting import format_source

if TYPE_CHECKING:
    from random import Random

    from mind_mlir import Module
    from mind_mlir.ir.attributes import Array


def formatted(text: str) -> str:
    return format_source(SourceText("text", text))


def text_of(module: Module) -> str:
    return mind_mlir.print_module(module)


@examples(40)
@given(
    program=surface_programs(),
    random=st.randoms(use_true_random=True),
    density=st.sampled_from((0.01, 0.05, 0.3)),
)
def test_formatting_keeps_the_tree_and_all_comments_and_is_done_at_once(
    program: Generated, random: Random, density: float
) -> None:
    text, tree = program.source.text, shape(program.tree)
    assert shape(reading_of(text).tree) == tree
    assert formatted(text) == text
    assert max(map(len, text.splitlines())) <= 100
    other = mangled(text, random, density)
    assert shape(reading_of(other).tree) == tree
    once = formatted(other)
    assert shape(reading_of(once).tree) == tree
    assert comments(once) == comments(other)
    assert formatted(once) == once


@examples(25)
@given(program=surface_programs(), random=st.randoms(use_true_random=True))
def test_formatting_printing_and_reading_leave_the_module_as_it_is(
    program: Generated, random: Random
) -> None:
    module = lower(reading_of(program.source.text))
    text = text_of(module)
    again = mind_mlir.parse(text)
    assert again == module
    assert text_of(again) == text
    assert text_of(lower(reading_of(formatted(mangled(program.source.text, random, 0.05))))) == text


@examples(8)
@given(program=surface_programs(), seed=st.integers(0, 1 << 32))
def test_compiled_programs_compute_what_interpreted_ones_do(program: Generated, seed: int) -> None:
    module = lower(reading_of(program.source.text))
    given_ = arguments(module, np.random.default_rng(seed))
    found = compile_counted(module)(**given_)
    expected = mind_mlir.interpret(module, given_)
    for ours, theirs in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
        bound = 1e-5 * max(1.0, float(np.max(np.abs(theirs), initial=0)))
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=bound)


def arguments(module: Module, random: np.random.Generator) -> dict[str, Array]:
    """Return arrays of quarters, of small integers and of truth values, for what a module takes."""
    entry = module.functions["main"].entry
    types: dict[str, Any] = {str(each.name): each.tensor_type for each in entry.parameters}
    inputs = [operation for operation in entry.operations if operation.opcode == "Input"]
    types |= {str(each.attributes["name"]): each.results[0].type for each in inputs}
    found = {}
    for name, type_ in types.items():
        numbers = random.integers(-4, 5, type_.extents)
        if type_.dtype.is_float:
            found[name] = np.asarray(numbers / 4, type_.dtype.numpy)
        else:
            found[name] = np.asarray(numbers > 0 if type_.dtype is DType.I1 else numbers, type_.dtype.numpy)
    return found


def test_lowering_is_the_same_in_every_process(tmp_path: Path) -> None:
    texts: list[str] = []

    @settings(max_examples=25, derandomize=True)
    @given(surface_programs())
    def collect(program: Generated) -> None:
        texts.append(program.source.text)

    collect()
    (tmp_path / "programs").write_text("\n".join(map(json.dumps, texts)))
    ours = hashlib.sha256("".join(text_of(lower(reading_of(text))) for text in texts).encode()).hexdigest()
    script = Path(__file__).with_name("surface_child.py")
    for seed in ("1", "77"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, str(script), str(tmp_path / "programs")]
        done = subprocess.run(command, capture_output=True, env=environment, timeout=120, check=True)
        assert hashlib.sha256(done.stdout).hexdigest() == ours
