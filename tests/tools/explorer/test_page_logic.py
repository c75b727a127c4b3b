"""The parts of the page's script that need no document: lines, marks, search, differences, addresses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from explorations import HOSTILE, small
from hypothesis import given, settings
from hypothesis import strategies as st
from py_mini_racer import mini_racer

from mind_mlir.tools.explorer.differences import differences
from mind_mlir.tools.explorer.page import ASSETS, LOGIC
from mind_mlir.tools.explorer.payload import payload

#: A function of JavaScript, as an expression, and what it is called with; returns what it returns.
Run = Callable[..., Any]


@pytest.fixture(scope="module")
def js() -> Iterator[Run]:
    with mini_racer() as engine:
        engine.eval("\n".join((ASSETS / name).read_text(encoding="utf-8") for name in LOGIC))

        def run(function: str, *arguments: object) -> Any:
            values = ", ".join(json.dumps(each) for each in arguments)
            return json.loads(str(engine.eval(f"JSON.stringify(({function})({values})) ?? 'null'")))

        yield run


TEXTS = st.lists(st.text("aB<%1 (.\x0b\u2028é😀", max_size=12), min_size=1, max_size=12).map("\n".join)


@given(TEXTS)
def test_lines_are_cut_where_python_cuts_them(js: Run, text: str) -> None:
    cut = "(text) => { const t = new Lines(text); return Array.from(Array(t.count), (_, n) => t.line(n)); }"
    assert js(cut, text) == text.split("\n")


@given(TEXTS)
def test_each_place_of_a_text_is_in_its_line(js: Run, text: str) -> None:
    places = (
        "(text) => { const t = new Lines(text); return Array.from(text.split(''), (_, at) => t.lineAt(at)); }"
    )
    units = text.encode("utf-16-le")
    breaks = [units[at : at + 2] == b"\n\0" for at in range(0, len(units), 2)]
    assert js(places, text) == [sum(breaks[:at]) for at in range(len(breaks))]


FIND = "(text, query, regular) => Array.from(linesWith(new Lines(text), wanted(query, regular)).lines)"


@given(TEXTS, st.text("aB<%1 (.", min_size=1, max_size=3))
def test_search_finds_the_lines_that_hold_it(js: Run, text: str, query: str) -> None:
    exact = any(each.isupper() for each in query)
    folded = [line if exact else line.lower() for line in text.split("\n")]
    assert js(FIND, text, query, False) == [number for number, line in enumerate(folded) if query in line]


@pytest.mark.parametrize(
    ("query", "lines"), [("^a", [0, 2]), ("b$", [0]), ("x*", [1]), (r"\d+", [3]), ("A|B", []), ("$", [])]
)
def test_search_takes_regular_expressions(js: Run, query: str, lines: list[int]) -> None:
    assert js(FIND, "a b\nxx\na c\n-12", query, True) == lines


def test_search_keeps_only_so_many_lines(js: Run) -> None:
    found = js(
        "(text) => { const f = linesWith(new Lines(text), /a/g, 2); return [f.lines.length, f.more]; }",
        "a\na\na",
    )
    assert found == [2, True]


@given(st.lists(st.lists(st.integers(0, 9), unique=True).map(sorted), min_size=1, max_size=4), st.data())
def test_next_and_previous_go_through_all_that_was_found(
    js: Run, found: list[list[int]], data: st.DataObject
) -> None:
    step = data.draw(st.sampled_from([1, -1]))
    places = [(text, line) for text, lines in enumerate(found) for line in lines]
    walk = """(found, step, count) => {
      const seen = [];
      let at = { text: 0, line: step > 0 ? -1 : 10 };
      for (let turn = 0; turn < count; turn += 1) {
        at = following(found, at.text, at.line, step);
        seen.push([at.text, at.line]);
      }
      return seen;
    }"""
    seen = js(walk, found, step, len(places))
    assert sorted(map(tuple, seen)) == places
    if not places:
        assert js("(found) => following(found, 0, 0, 1)", found) is None


@pytest.mark.parametrize("language", ["core", "ptir", "mlir", "mind", "python", "asm", "text", "other"])
@pytest.mark.parametrize(
    "line",
    [HOSTILE, '%0 = Input {name="x"} : tensor<f32[2]>', "", "    vaddps zmm0, zmm1 ; x", '"never closed \\'],
)
def test_a_highlighted_line_is_the_line(js: Run, language: str, line: str) -> None:
    html = js(
        "(language, line) => marked(language, line, { mark: [[1, 4], [6, 99]], ins: [[2, 8]] })",
        language,
        line,
    )
    plain = re.sub(r"</?(?:span|mark|ins)(?: class=\"t-[a-z]+\")?>", "", html)
    entities = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&amp;": "&"}
    assert "<" not in plain
    assert re.sub(r"&\w+;|&#39;", lambda each: entities[each[0]], plain) == line


@pytest.mark.parametrize(
    ("language", "line", "kinds"),
    [
        (
            "core",
            "%2 = MatMul(%0) {axes=[1]} : f32[2] // so",
            "value operation value attribute number type number comment",
        ),
        (
            "mlir",
            '%1 = linalg.fill ins(%c : f32) {a = "b"}',
            "value operation keyword value type attribute string",
        ),
        ("mind", "let x = exp(y); // so", "keyword operation comment"),
        ("python", "def f(x): return 'a' # so", "keyword operation keyword string comment"),
        ("asm", "    vaddps zmm0, [rdi + 0x40] ; so", "operation value value number comment"),
        ("asm", ".L12:", "symbol"),
    ],
)
def test_each_language_has_its_words(js: Run, language: str, line: str, kinds: str) -> None:
    assert (
        js("(language, line) => tokens(language, line).map(([kind]) => kind)", language, line)
        == kinds.split()
    )


def test_a_line_is_highlighted_in_time_that_grows_with_it(js: Run) -> None:
    for language in ("core", "mlir", "mind", "python", "asm"):
        for piece in ("tensor<", '"\\', "a.", "!llvm.", "-1", "_"):
            js("(language, piece) => tokens(language, piece.repeat(2000)).length", language, piece)


LIT = """(data, operations) => {
  const { programs } = new Exploration(data);
  const [program] = programs;
  return program.stages.map((stage) => stage.marks.places(program.sets.lit(operations)));
}"""


def test_an_operation_lights_its_lines_at_every_stage(js: Run) -> None:
    data = payload([small()])
    assert js(LIT, data, [2]) == [[[2, 3]], [[0, 1]], [[1, 9]]]
    assert js(LIT, data, [1, 2]) == [[[1, 3]], [[0, 1]], [[1, 9]]]
    assert js(LIT, data, []) == [[], [], []]


def test_operations_of_one_program_are_found_in_another(js: Run) -> None:
    there = "(data, ...rest) => new Exploration(data).translated(...rest)"
    data = {**payload([small(), small(), small()])}
    data["comparisons"] = [{"stages": {}, "same": [0, 1, -1, 2]}, {"stages": {}, "same": [3, 2, 1, 0]}]
    assert js(there, data, [1, 2], 0, 1) == [1, 3]
    assert js(there, data, [2, 3], 1, 0) == [2]
    assert js(there, data, [0, 3], 1, 2) == [1, 3]


def test_a_source_is_called_as_its_file_without_folders(js: Run) -> None:
    titles = "(data) => new Exploration(data).programs[0].stages.map(({ title, path }) => [title, path])"
    data = payload([small()])
    data["explorations"][0]["panes"][0]["title"] = "examples/control/heat.ir"
    assert js(titles, data)[:2] == [["heat.ir", "examples/control/heat.ir"], ["The mind dialect"] * 2]


LINES = st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=12)


@given(LINES, LINES)
def test_lines_of_differing_texts_find_one_another(js: Run, first: list[str], second: list[str]) -> None:
    blocks = [number for block in differences(first, second) for number in block]
    across = """(blocks, counts) => {
      const changes = new Changes(blocks);
      return [0, 1].map((side) => Array.from({ length: counts[side] }, (_, line) =>
        [changes.kind(side, line), changes.across(side, line)]));
    }"""
    sides = js(across, blocks, [len(first), len(second)])
    for side, (own, other) in enumerate(((first, second), (second, first))):
        for line, (kind, there) in enumerate(sides[side]):
            if kind in ("", "gap"):
                assert own[line] == other[there]
    plain = [sum(kind in ("", "gap") for kind, _ in side) for side in sides]
    assert plain[0] == plain[1]


@given(st.text("ab", max_size=8), st.text("ab", max_size=8))
def test_what_differs_in_a_line_is_between_what_does_not(js: Run, line: str, other: str) -> None:
    first, end = js("differing", line, other)
    assert other.startswith(line[:first])
    assert other.endswith(line[end:])
    assert (first == end) or line != other


@given(st.lists(st.integers(0, 60), unique=True).map(sorted), st.sampled_from([0.25, 1.0, 7.5]))
def test_of_each_stretch_of_lines_the_first_is_drawn(js: Run, lines: list[int], stretch: float) -> None:
    firsts = {line // stretch: line for line in reversed(lines)}
    assert js("apart", lines, stretch) == sorted(firsts.values())


@pytest.mark.parametrize("count", [1, 30, 200_000, 3_000_000])
def test_every_line_of_a_list_can_be_seen(js: Run, count: int) -> None:
    height = 500
    inner = js("contentHeight", count)
    assert inner <= 15_000_000
    for line in {0, count // 3, count - 1}:
        top = js("topOf", line, height, count)
        assert 0 <= top <= max(0, inner - height)
        rows = js("shownRows", top, height, count)
        assert rows["from"] <= line < rows["to"] <= count
        assert rows["to"] - rows["from"] < 60
        assert rows["shift"] + (line - rows["from"] + 1) * 18 <= top + height + 18


STATES = st.fixed_dictionaries(
    {
        "panes": st.lists(
            st.fixed_dictionaries(
                {"key": st.text("a0.é*&+=", min_size=1), "share": st.sampled_from([0.5, 1, 2.25])}
            ),
            max_size=3,
        ),
        "view": st.sampled_from(["graph", "memory", ""]),
        "dock": st.integers(100, 900),
        "side": st.booleans(),
        "line": st.none() | st.text("a.1&", min_size=1),
        "operations": st.lists(st.integers(0, 99), max_size=3),
        "query": st.text("a=&#%é ", max_size=6),
        "regular": st.booleans(),
    }
)


@given(STATES)
def test_an_address_says_what_is_shown(js: Run, state: dict[str, object]) -> None:
    assert js("(state) => fromAddress(`#${toAddress(state)}`)", state) == state


@settings(max_examples=50)
@given(st.text("panesview=&*+.%#09ab", max_size=40))
def test_any_address_can_be_read(js: Run, text: str) -> None:
    assert isinstance(js("fromAddress", text)["panes"], list)


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        ("bytes(0)", "0 B"),
        ("bytes(1536)", "1.5 KiB"),
        ("bytes(5 * 2 ** 30)", "5 GiB"),
        ("duration(0.00012)", "120 µs"),
        ("duration(0.25)", "250 ms"),
        ("duration(12.345)", "12.3 s"),
        ("grouped(1234567)", "1,234,567"),
        ("counted(1, 'line')", "1 line"),
        ("ticks(0, 100, 5)", [0, 20, 40, 60, 80, 100]),
        ("ticks(0, 700000, 5, 2)", [0, 262144, 524288]),
        ("ticks(3, 3, 5)", []),
        ("neighbour([[2, 3], [7, 9]], 2, 1)", 1),
        ("neighbour([[2, 3], [7, 9]], 8, 1)", 0),
        ("neighbour([[2, 3], [7, 9]], 2, -1)", 1),
        (
            "nested([[0, 0, 9], [0, 1, 3], [0, 3, 8], [0, 4, 5], [0, 9, 10], [1, 2, 3]]).tops",
            [0, 1, 1, 2, 0, 3],
        ),
        ("nested([[1, 0, 5], [0, 1, 2], [1, 0, 9]])", {"tops": [2, 0, 1], "threads": {}, "count": 3}),
        ("nearest([[0, 1], [90, 95]], 0.8, 100)", 1),
    ],
)
def test_small_functions(js: Run, call: str, shown: object) -> None:
    assert js(f"() => {call}") == shown
