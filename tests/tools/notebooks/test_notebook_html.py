"""What notebooks show: HTML that is escaped, small, without scripts, and says what the object is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir.tools.notebooks import graphs, highlighting

EVIL = "<script>alert(1)</script>"
MODULE = """\
%0 = Input {name="x"} : tensor<f32[2, 3]>
%1 = Relu (%0) : tensor<f32[2, 3]>
%2 = Sum (%1) {axes=[1], keepdims=false} : tensor<f32[2]>
outputs: %2
"""
BRANCHES = """\
func @main(%x: tensor<f32[]>, %p: tensor<i1[]>) -> (tensor<f32[]>) {
^entry:
  cond_br %p, ^done(%x), ^other
^other:
  %y = Neg (%x) : tensor<f32[]>
  br ^done(%y)
^done(%z: tensor<f32[]>):
  return %z
}
"""
#: What a notebook stores for an object at most.
MOST_BYTES = 60_000


@dataclass
class State:
    x: Any
    v: Any


class Checked(HTMLParser):
    """Reads HTML whose elements are all closed, and collects its text and elements."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.tags: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] != ["style"]:
            self.text += data


def shown(thing: Any) -> Checked:
    html = thing._repr_html_()
    assert len(html.encode()) < MOST_BYTES
    found = Checked(html)
    assert "script" not in found.tags
    return found


def test_a_module_shows_its_text_and_its_graph() -> None:
    module = mind_mlir.parse(MODULE)
    found = shown(module)
    assert str(module) in found.text
    assert found.tags.count("rect") == 3
    assert found.tags.count("polyline") == 2


def test_names_of_a_program_are_text() -> None:
    module = mind_mlir.parse(MODULE.replace('"x"', f'"{EVIL}"'))
    assert EVIL in shown(module).text
    assert EVIL in shown(mind_mlir.compile(module)).text


def test_a_large_module_shows_its_beginning() -> None:
    lines = [f"%{number} = Neg (%{number - 1}) : tensor<f32[2]>" for number in range(1, 1000)]
    text = "\n".join(['%0 = Input {name="x"} : tensor<f32[2]>', *lines, "outputs: %999"])
    found = shown(mind_mlir.parse(text))
    assert f"... {1001 - highlighting.MOST_LINES} more lines" in found.text
    assert "svg" not in found.tags


def test_a_program_with_branches_has_no_graph() -> None:
    module = mind_mlir.parse(BRANCHES)
    assert graphs.graph(module.functions[0]) == ""
    assert "cond_br" in shown(module).text


def test_an_executable_shows_what_it_takes_and_how_it_is_scheduled() -> None:
    found = shown(mind_mlir.compile(mind_mlir.parse(MODULE)))
    assert re.search(r"takes\s*x\s*float32\s*\(2, 3\)\s*24 bytes", found.text)
    assert re.search(r"returns\s*output_0\s*float32\s*\(2,\)\s*8 bytes", found.text)
    assert "scratch memory of a call: " in found.text
    assert "1. fused" in found.text  # the schedule


def test_a_function_shows_what_it_has_been_compiled_for() -> None:
    @mind_mlir.jit
    def step(s: State, dt: float) -> State:
        return State(s.x + dt * s.v, s.v)

    assert "not compiled yet" in shown(step).text
    step(State(np.ones(2), np.ones(2)), 0.5)
    step(State(np.ones(3), np.ones(3)), 0.5)
    text = shown(step).text
    assert "s.x: tensor<f64[2]>" in text
    assert "State.x: tensor<f64[3]>" in text
    assert "Module" in shown(step.lower(State(np.ones(2), np.ones(2)), 0.5)).text


def test_a_gradient_says_what_of() -> None:
    @mind_mlir.jit
    def loss(w: Any, x: Any) -> Any:
        return (w * x).sum()

    assert "gradients of loss" in shown(loss.grad(("w", "x"))).text
    assert "with respect to w, x" in shown(loss.grad(("w", "x"))).text
    assert "Gradient" in shown(mind_mlir.differentiate(mind_mlir.parse(MODULE))).text


def test_a_bundle_and_a_function_show_their_interface(tmp_path: Any) -> None:
    executable = mind_mlir.compile(mind_mlir.parse(MODULE))
    assert "returns" in shown(executable["main"]).text
    mind_mlir.package(mind_mlir.parse(MODULE), tmp_path / "bundle")
    assert "returns" in shown(mind_mlir.load_bundle(tmp_path / "bundle")).text


def test_a_profile_is_a_table() -> None:
    x = np.ones((64, 64), np.float32)
    profile = mind_mlir.jit(lambda x: (x @ x).sum(axis=1)).profile(x)
    found = shown(profile)
    assert "timeshareruns" in found.text  # the head
    assert found.tags.count("tr") == len(profile.rows) + 3


def test_diagnostics_have_their_carets() -> None:
    with pytest.raises(mind_mlir.VerificationError) as caught:
        mind_mlir.verify(mind_mlir.parse(MODULE.replace("Relu", "Rely")))
    found = shown(caught.value)
    assert "error[E1102]" in found.text
    assert "  |      ^^^^" in found.text
    assert "^^^^" in shown(caught.value.diagnostics[0]).text
    assert EVIL in shown(mind_mlir.Diagnostic("E2001", EVIL)).text
