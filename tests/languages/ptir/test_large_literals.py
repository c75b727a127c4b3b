"""Large literals: what they take is in proportion to their texts, and every byte is looked at."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.ptir_literals import program
from mind_mlir.diagnostics import ParseError
from mind_mlir.languages.ptir import dumps, parse
from mind_mlir.languages.ptir.files import FORMATS, pieces
from mind_mlir.languages.ptir.literals import NoByte, read_bytes, spell_bytes

if TYPE_CHECKING:
    from mind_mlir.languages.ptir.files import Format

SIZE = 1_500_001


@pytest.mark.parametrize("form", FORMATS)
def test_memory_is_in_proportion(form: Format) -> None:
    made = program(SIZE)
    longest = max(map(len, pieces(made, form)))
    text = dumps(made, form)
    assert longest < len(text) / 2  # a piece has a part of the literal
    tracemalloc.start()
    try:
        read = parse(text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert read == made
    assert peak < 2 * len(text) + 10**6  # a list of integers would take more than twice that


@pytest.mark.parametrize("spaces", [",", ", ", ",\n          ", " ,\t"])
@pytest.mark.parametrize("form", ["json", "display"])
def test_spaces_do_not_matter(form: Format, spaces: str) -> None:
    made = program(2000)
    start, _, rest = dumps(made, form).rpartition('"bytes": [' if form == "json" else "bytes: [")
    numbers, _, end = rest.partition("]")
    listed = spaces.join(number.strip() for number in numbers.split(","))
    key = '"bytes": [' if form == "json" else "bytes: ["
    assert parse(f"{start}{key} {listed} ]{end}") == made


@pytest.mark.parametrize(
    "bad", ["256", "-1", "1.0", "07", "", "1 2", "1e1", "true", '"1"', "[1]", "\u0661", "x"]
)
@pytest.mark.parametrize("position", [0, 1234, 1999])
def test_the_first_bad_byte_is_found(bad: str, position: int) -> None:
    start, _, rest = dumps(program(2000)).partition('"bytes": [')
    numbers, _, end = rest.partition("]")
    listed = numbers.split(",")
    listed[position] = bad
    text = f'{start}"bytes": [{",".join(listed)}]{end}'
    with pytest.raises(ParseError) as caught:
        parse(text)
    found = caught.value.diagnostics[0]
    assert found.location is not None
    assert found.location.offsets[0] >= len(start)
    if found.code == "E4005":
        assert found.context["path"].endswith(f".bytes[{position}]")
        assert bad == "" or found.location.text == bad
    else:
        assert found.code == "E1101"


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=40), st.sampled_from([",", ", ", " , ", "\n,"]))
def test_lists_are_each_others_inverse(data: bytes, separator: str) -> None:
    text = "".join(spell_bytes(data, separator))
    assert read_bytes(text, 0, len(text)) == data


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from("0129, \n.-x"), max_size=12))
def test_lists_are_those_of_json(text: str) -> None:
    import json  # noqa: PLC0415 -- the oracle of this test alone

    try:
        expected = json.loads(f"[{text}]")
    except ValueError:
        expected = None
    if expected is not None and not all(isinstance(n, int) and 0 <= n <= 255 for n in expected):
        expected = None
    if expected is not None and "-" in text:
        return  # -0 is an integer of JSON, but no byte
    if expected is None:
        with pytest.raises(NoByte) as caught:
            read_bytes(text, 0, len(text))
        assert 0 <= caught.value.start < caught.value.end <= len(text) + 1
    else:
        assert list(read_bytes(text, 0, len(text))) == expected
