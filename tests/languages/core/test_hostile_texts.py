"""What a text costs grows with its size: in memory, in work and in what is said about it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.hostile_texts import KINDS
from mind_mlir import Builder, DType, MindError, TensorType, VerificationError, parse
from mind_mlir.diagnostics.findings import MAX_FINDINGS, MORE
from mind_mlir.diagnostics.render import render
from mind_mlir.languages.source import decode_source
from mind_mlir.passes.verify import check
from mind_mlir.tools.cli.session import DEFAULT_ERROR_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[3]
#: Of each kind of text; MIND_MLIR_FUZZ=500 makes it 50 MB.
MEGABYTES = 0.1 * int(os.environ.get("MIND_MLIR_FUZZ", "1"))
#: Bytes of memory for a byte of text.
LIMIT = 20
#: Kinds of nothing but functions, blocks and regions: several objects with their places for few characters.
STRUCTURE = ("functions", "named functions", "blocks", "empty blocks", "labels", "regions")
STRUCTURE_LIMIT = 60
INPUT = '%0 = Input {name="x"} : tensor<f32[4]>\n'


def test_memory_stays_below_twenty_times_the_text() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.check_memory", "--json", "--megabytes", str(MEGABYTES)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    rows = json.loads(done.stdout)["rows"]
    slack = 4 * 10**6  # what the compiler and its allocator take for a small text
    assert len(rows) >= len(KINDS)
    assert {row["text"]: row["exit code"] for row in rows if row["exit code"] not in (0, 1)} == {}
    taken = {row["text"]: row["bytes a byte"] - slack / (row["MB"] * 10**6) for row in rows}
    limits = dict.fromkeys(KINDS, LIMIT) | dict.fromkeys(STRUCTURE, STRUCTURE_LIMIT)
    assert {name: ratio for name, ratio in taken.items() if ratio > limits.get(name, LIMIT)} == {}


def work(body: Callable[[], object]) -> int:
    """Return how many functions, of Python and of C, a call makes."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        body()
    finally:
        sys.setprofile(None)
    return count


def read(text: str) -> None:
    try:
        found = check(parse(text))
    except MindError as error:
        found = list(error.diagnostics)
    render(found[:DEFAULT_ERROR_LIMIT])


@pytest.mark.parametrize("kind", KINDS)
def test_work_grows_with_the_text(kind: str) -> None:
    small, large = (KINDS[kind](size) for size in (4_000, 16_000))
    read(small)  # what is made once
    assert work(lambda: read(large)) < 6 * work(lambda: read(small)) + 2_000


def test_findings_are_counted_beyond_the_first() -> None:
    with pytest.raises(MindError) as caught:
        parse("a\n" * 3 * MAX_FINDINGS)
    *kept, more = caught.value.diagnostics
    assert len(kept) == MAX_FINDINGS
    assert [finding.location.line for finding in kept if finding.location] == list(range(1, MAX_FINDINGS + 1))
    assert more.code == MORE
    assert more.context["omitted"] == 2 * MAX_FINDINGS
    assert "3,000 errors" in render(caught.value.diagnostics)


@pytest.mark.parametrize("line", ["%1 = Neg (%7) : tensor<f32[]>\n", "%0 = Neg (%0) : tensor<f32[4]>\n"])
def test_findings_of_the_verifier_are_counted_too(line: str) -> None:
    found = check(
        parse('%0 = Input {name="x"} : tensor<f32[]>\n' + line * 2 * MAX_FINDINGS + "outputs: %0\n")
    )
    assert len(found) == MAX_FINDINGS + 1
    assert found[-1].code == MORE


def test_repeated_axes_are_one_finding() -> None:
    axes = ",".join("0" * 20_000)
    text = INPUT + f"%1 = Sum (%0) {{axes=[{axes}]}} : tensor<f32[]>\noutputs: %1\n"
    (found,) = check(parse(text))
    assert found.code == "E1103"
    assert "20,000 elements" in found.message
    b = Builder()
    with pytest.raises(VerificationError, match="20,000 elements"):
        b.emit("Sum", b.input("x", TensorType(DType.F32, (4,))), axes=(0,) * 20_000)


@pytest.mark.parametrize(
    ("before", "unit", "after", "codes"),
    [
        ("", "func @f() {\n^a:\n  return\n}\n", "", []),
        ("func @f() {\n^a:\n  return\n", "^b:\n  br ^b\n", "}", []),
        ("func @f() {\n", "^a:\n", "return\n}", ["E4111"]),
        ("func @f() {\n^a:\n  return\n", "br ^a\n", "}", ["E4112"]),
        ("func @f() {\n^a:\n", "%0 = F : tensor<f32[]> {\n^a:\n", "", ["E1101", "E1101"]),
        ("func @f() {\n^a:\n  return\n}\n", "}\n", "", ["E1101"]),
        ("func @f() {\n^a:\n  return\n}\n", "%0 = F : tensor<f32[]>\n", "", ["E1101"]),
        ("", "func @f() {\n", "}", ["E1101"]),
    ],
)
def test_thousands_of_functions_blocks_and_braces(
    before: str, unit: str, after: str, codes: list[str]
) -> None:
    text = before + unit * 5_000 + after
    try:
        module = parse(text)
    except MindError as error:
        found = [finding.code for finding in error.diagnostics]
        assert found[: len(codes)] == codes
        assert set(found) <= {*codes, MORE}
    else:
        assert codes == []
        assert sum(len(function.blocks) for function in module.functions) >= 5_000


@pytest.mark.parametrize("extent", [9, 2**62])
def test_a_value_of_thousands_of_dimensions(extent: int) -> None:
    """Its element count has so many digits that Python refuses to print it."""
    type_ = f"tensor<f32[{','.join([str(extent)] * 10_000)}]>"
    text = f'%0 = Input {{name="x"}} : {type_}\n%1 = Reshape (%0) {{new_shape=[1]}} : tensor<f32[1]>\n'
    assert [finding.code for finding in check(parse(f"{text}outputs: %1\n"))] == ["E4106"]


def test_more_attributes_than_any_operation_has() -> None:
    with pytest.raises(MindError, match="no operation has more than 256 attributes"):
        parse("%0 = Neg (" + "1," * 1_000 + "1) : tensor<f32[]>\n")


@pytest.mark.parametrize("unit", ["a,", "1,", "0:1,"])
def test_lists_longer_than_any_tensor_has_dimensions(unit: str) -> None:
    elements = unit * 70_000 + unit[:-1]
    with pytest.raises(MindError) as caught:
        parse(f"%0 = Slice (%0) {{starts=[{elements}]}} : tensor<f32[]>\n")
    assert [finding.code for finding in caught.value.diagnostics] == ["E1103"]


def test_places_in_a_text_of_long_and_of_many_lines() -> None:
    text = "a" * 5_000 + "\n" * 5_000 + "é" * 3_000 + "\r\n" + "b"
    source = decode_source(text.encode(), "text")
    lines = text.split("\n")
    assert source.index.count == len(lines)
    offset = 0
    for number, line in enumerate(lines, start=1):
        assert source.index.span(number) == (offset, offset + len(line))
        for position in {offset, offset + len(line) // 2, offset + len(line)}:
            assert source.index.locate(position) == (number, offset)
            location = source.locate(position, position + 3)
            assert (location.line, location.column) == (number, position - offset + 1)
            assert location.text in text
            assert location.offsets[0] == position
        offset += len(line) + 1
