"""Grammars of editors: their words are the compiler's, and they read every program of the repository."""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tree_sitter
from derived_programs import Derivation

from editors.grammars import FOLDER, WRITTEN
from mind_mlir.diagnostics import SourceText
from mind_mlir.languages.mind.syntax.reading import read
from mind_mlir.languages.mind.syntax.tokens import KEYWORDS

ROOT = Path(__file__).parents[1]
GRAMMAR = FOLDER / "tree-sitter-mind"
FOLDERS = ("examples", "lit_tests", "tests")
PROGRAMS = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.mind"))
#: A test of the corpus: its name, a text and the tree of that.
CASE = re.compile(r"^=+\n([^\n]+)\n=+\n\n(.*?)\n-+\n\n(.*?)(?=\n\n=|\Z)", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("path", sorted(WRITTEN))
def test_grammars_are_those_that_the_tables_give(path: str) -> None:
    assert (FOLDER / path).read_text(encoding="utf-8") == WRITTEN[path](), "run make docs"


def strings(rule: Any) -> Iterator[str]:
    if isinstance(rule, list):
        for each in rule:
            yield from strings(each)
    elif isinstance(rule, dict):
        if rule.get("type") == "STRING":
            yield rule["value"]
        yield from strings([value for value in rule.values() if isinstance(value, (list, dict))])


def test_keywords_are_those_of_the_reader() -> None:
    rules = json.loads((GRAMMAR / "src" / "grammar.json").read_text(encoding="utf-8"))["rules"]
    assert {word for word in strings(rules) if word.isalpha()} - {"Tensor"} == KEYWORDS


@pytest.fixture(scope="module")
def parser(tmp_path_factory: pytest.TempPathFactory) -> tree_sitter.Parser:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("the parser is C, and there is no cc")
    library = tmp_path_factory.mktemp("parser") / "mind.so"
    source = GRAMMAR / "src" / "parser.c"
    options = ["-O0", "-shared", "-fPIC", "-I", str(GRAMMAR / "src"), "-o", str(library)]
    subprocess.run([compiler, *options, str(source)], check=True)
    language = ctypes.CDLL(str(library)).tree_sitter_mind
    language.restype = ctypes.c_void_p
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    found = tree_sitter.Language(capsule(language(), b"tree_sitter.Language", None))
    return tree_sitter.Parser(found)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_tree_sitter_reads_what_the_reader_reads(path: Path, parser: tree_sitter.Parser) -> None:
    text = path.read_text(encoding="utf-8")
    if not read(SourceText(path.name, text)).findings:
        assert not parser.parse(text.encode()).root_node.has_error


def test_tree_sitter_reads_what_the_grammar_derives(parser: tree_sitter.Parser) -> None:
    texts = [" ".join(Derivation(seed).words("program")) for seed in range(150)]
    wrong = [text for text in texts if parser.parse(text.encode()).root_node.has_error]
    assert wrong == []


def test_trees_of_the_corpus_are_those_that_are_written(parser: tree_sitter.Parser) -> None:
    files = sorted(GRAMMAR.glob("test/corpus/*.txt"))
    cases = [case for path in files for case in CASE.findall(path.read_text(encoding="utf-8"))]
    assert len(cases) >= 6
    for name, text, tree in cases:
        found = str(parser.parse(text.encode()).root_node)
        assert found == re.sub(r"\s+", " ", tree.strip()).replace("( ", "(").replace(" )", ")"), name


def test_highlights_name_nodes_that_there_are(parser: tree_sitter.Parser) -> None:
    assert parser.language is not None
    text = (GRAMMAR / "queries" / "highlights.scm").read_text(encoding="utf-8")
    query = tree_sitter.Query(parser.language, text)
    assert query.capture_count > 20


# TextMate


class Colours:
    """Says which scope each part of a line has: that of the first rule that matches the earliest."""

    def __init__(self, name: str) -> None:
        grammar = json.loads((FOLDER / "vscode" / "syntaxes" / name).read_text(encoding="utf-8"))
        rules = grammar["patterns"]
        self.rules = [(re.compile(_python(rule["match"])), rule) for rule in rules if "match" in rule]
        strings = next(rule for rule in rules if rule.get("begin") == '"')
        self.rules.append((re.compile(r'"(?:[^"\\]|\\.)*"?'), strings))

    def of(self, line: str) -> Iterator[tuple[str, str]]:
        place = 0
        while True:
            tried = ((expression.search(line, place), rule) for expression, rule in self.rules)
            found = [(match, rule) for match, rule in tried if match is not None and match[0]]
            if not found:
                return
            match, rule = min(found, key=lambda each: each[0].start())
            if "captures" in rule:
                yield from ((match[int(group)], each["name"]) for group, each in rule["captures"].items())
            else:
                yield match[0], rule["name"]
            place = match.end()


def _python(expression: str) -> str:
    """Return an expression of Oniguruma, as far as the grammars go, as Python has it."""
    return (
        expression.replace("[[:alpha:]_]", r"[^\W\d]")
        .replace("[[:alnum:]_]", r"\w")
        .replace("[.[:alpha:]]", r"(?:\.|[^\W\d_])")
        .replace("[[:upper:]]", "[A-Z]")
    )


def test_words_of_programs_have_their_colours() -> None:
    colours = Colours("mind.tmLanguage.json")
    for path in PROGRAMS[:12]:
        source = SourceText(path.name, path.read_text(encoding="utf-8"))
        for token in read(source).tokens:
            if token.kind not in ("keyword", "number"):
                continue
            start, end = source.index.span(source.index.locate(token.start)[0])
            found = [scope for text, scope in colours.of(source.text[start:end]) if text == token.text]
            wanted = ("keyword", "constant.language") if token.kind == "keyword" else ("constant.numeric",)
            assert any(scope.startswith(wanted) for scope in found), (path.name, token)


@pytest.mark.parametrize(
    ("grammar", "line", "wanted"),
    [
        ("mind", "let x = sum(p.w, axes=[1]); // y", ["let", "sum", "w", "1", "// y"]),
        (
            "mind-ir",
            '%0 = Input {name="x"} : tensor<f32[2]>',
            ["%0", "Input", "name", '"x"', "tensor", "f32", "2"],
        ),
        ("mind-ir", "cond_br %left, ^step, ^next # go on", ["cond_br", "%left", "^step", "^next", "# go on"]),
        (
            "ptir",
            "%1 = reduce_max %x axes[0] -> tensor<bf16, 2x3>",
            ["%1", "reduce_max", "%x", "axes", "0", "tensor", "bf16"],
        ),
    ],
)
def test_colours_of_a_line(grammar: str, line: str, wanted: list[str]) -> None:
    colours = Colours(f"{grammar}.tmLanguage.json")
    found = [text.strip() for text, scope in colours.of(line) if scope != "keyword.operator"]
    assert [text for text in found if text in wanted] == wanted


def test_the_extension_names_files_that_there_are() -> None:
    package = json.loads((FOLDER / "vscode" / "package.json").read_text(encoding="utf-8"))["contributes"]
    paths = [each["path"] for each in package["grammars"]]
    for path in [*paths, *(each["configuration"] for each in package["languages"])]:
        assert json.loads((FOLDER / "vscode" / path).read_text(encoding="utf-8"))
