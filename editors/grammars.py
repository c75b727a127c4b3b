"""Writes the editors' grammars: `python editors/grammars.py`, or `make docs`.

Their words are those of the lexers, the built-in functions and the records of operations, which stand nowhere
else; tests/test_editor_grammars.py compares what is written with what would be.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mind_mlir.ir.profiles import CORE_V1
from mind_mlir.ir.types import DType
from mind_mlir.languages.mind.elaboration.builtins import builtins, modules
from mind_mlir.languages.mind.syntax.tokens import KEYWORDS
from mind_mlir.languages.ptir.schema import DTYPE_NAMES, compact_names, forms
from mind_mlir.ops.registry import all_ops
from mind_mlir.tools.lsp.ir_completion import KEYWORDS as IR_KEYWORDS
from mind_mlir.tools.lsp.surface_scopes import TYPE_NAMES

FOLDER = Path(__file__).parent
#: Words of the language that say where a program goes on, and values; the others declare something.
CONTROL = frozenset(("if", "else", "while", "for", "in", "return"))
VALUES = frozenset(("true", "false"))
assert CONTROL | VALUES < KEYWORDS, "these are words of the language"

_NAME = r"[[:alpha:]_][[:alnum:]_]*"
_STRING = {
    "begin": '"',
    "end": '"|$',
    "name": "string.quoted.double",
    "patterns": [{"match": r"\\.", "name": "constant.character.escape"}],
}


def _words(names: Iterable[str]) -> str:
    """Return an expression that matches one of some words."""
    return f"(?:{'|'.join(sorted(names, key=lambda name: (-len(name), name)))})".replace(".", r"\.")


def _matching(expression: str, *names: str) -> dict[str, Any]:
    """Return a rule that colours what matches, or its groups, one after the other."""
    if len(names) == 1:
        return {"match": expression, "name": names[0]}
    groups = {str(place): {"name": name} for place, name in enumerate(names, 1) if name}
    return {"match": expression, "captures": groups}


def _grammar(name: str, scope: str, patterns: list[dict[str, Any]]) -> str:
    about = "Written by editors/grammars.py from the compiler's own tables; do not edit."
    found = {"information_for_contributors": [about], "name": name, "scopeName": scope, "patterns": patterns}
    return json.dumps(found, indent=2) + "\n"


def surface_grammar() -> str:
    """Return the TextMate grammar of `.mind` programs."""
    declaring = KEYWORDS - CONTROL - VALUES
    return _grammar(
        "MIND",
        "source.mind",
        [
            _matching(r"//.*$", "comment.line.double-slash"),
            {"begin": r"/\*", "end": r"\*/", "name": "comment.block"},
            _STRING,
            _matching(rf"\b(fn)\s+({_NAME})", "keyword.declaration", "entity.name.function"),
            _matching(rf"\b(struct|type)\s+({_NAME})", "keyword.declaration", "entity.name.type"),
            _matching(
                rf"\b(import)\s+({_words(modules())})\b", "keyword.declaration", "entity.name.namespace"
            ),
            _matching(rf"\b{_words(declaring)}\b", "keyword.declaration"),
            _matching(rf"\b{_words(CONTROL)}\b", "keyword.control"),
            _matching(rf"\b{_words(VALUES)}\b", "constant.language"),
            _matching(rf"\b{_words(TYPE_NAMES)}\b", "support.type"),
            _matching(rf"(?<!\.)\b{_words(builtins())}\b(?!\s*=(?!=))", "support.function"),
            _matching(r"(?<=\.)[0-9]+", "constant.numeric"),
            _matching(
                r"\b(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|[0-9][0-9_]*(?:\.(?![.[:alpha:]])[0-9_]*)?"
                r"(?:[eE][+-]?[0-9_]+)?)",
                "constant.numeric",
            ),
            _matching(rf"(?<=\.){_NAME}", "variable.other.property"),
            _matching(rf"\b{_NAME}(?=\s*\()", "entity.name.function"),
            _matching(r"\b[[:upper:]][[:alnum:]_]*\b", "entity.name.type"),
            _matching(r"->|::|[<>=!]=|&&|\|\||[-+*/<>!=|]", "keyword.operator"),
        ],
    )


def _ir_patterns(keywords: Iterable[str], operations: Iterable[str], dtypes: Iterable[str]) -> list[Any]:
    """Return what the texts of Core IR and of PTIR have in common."""
    return [
        _matching(r"(?:#|//).*$", "comment.line"),
        _STRING,
        _matching(r"%[\w.]+", "variable.other"),
        _matching(r'@(?:[\w.]+|"[^"]*")', "entity.name.function"),
        _matching(r'\^(?:[\w.]+|"[^"]*")', "entity.name.label"),
        _matching(rf"(?<=[=\s])(?:{_words(operations)})(?=[\s({{])", "support.function"),
        _matching(rf"(?<![\w.])(?:{_words(keywords)})(?![\w.])", "keyword.control"),
        _matching(r"\b(?:[Tt]ensor|tuple|dense)(?=\s*<)", "storage.type"),
        _matching(rf"(?<=<)\s*{_words(dtypes)}\b", "support.type"),
        _matching(r"\b(?:true|false|inf|nan|NaN)\b", "constant.language"),
        _matching(r"[A-Za-z_][\w.]*(?=\s*(?:=(?!=)|:|\[))", "variable.parameter"),
        _matching(
            r"(?:(?<![\w%@^.])[-+]?|(?<=[0-9]x))(?:0[xX][0-9a-fA-F_]+|[0-9][0-9_]*(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)",
            "constant.numeric",
        ),
        _matching(r"->|=", "keyword.operator"),
    ]


def core_grammar() -> str:
    """Return the TextMate grammar of Core IR."""
    names = {record.opcode for record in all_ops()} | {a.name for each in all_ops() for a in each.aliases}
    dtypes = [each.core_name for each in CORE_V1.dtypes]
    return _grammar("MIND Core IR", "source.mind-ir", _ir_patterns(IR_KEYWORDS["core"], names, dtypes))


def ptir_grammar() -> str:
    """Return the TextMate grammar of PTIR's compact and display texts."""
    keywords = {*IR_KEYWORDS["compact"], *IR_KEYWORDS["display"]}
    dtypes = {*DTYPE_NAMES.values(), *(each.value for each in DType)}
    return _grammar("PTIR", "source.ptir", _ir_patterns(keywords, {*compact_names(), *forms()}, dtypes))


def highlights() -> str:
    """Return tree-sitter's query of what is coloured how."""
    quoted = " ".join(f'"{name}"' for name in sorted(builtins()))
    rows = {
        "@keyword": KEYWORDS - CONTROL - VALUES - {"fn", "import"},
        "@keyword.function": {"fn"},
        "@keyword.import": {"import"},
        "@keyword.conditional": {"if", "else"},
        "@keyword.repeat": {"while", "for", "in"},
        "@keyword.return": {"return"},
        "@operator": {"->", "=", "+", "-", "*", "/", "<", "<=", ">", ">=", "==", "!=", "&&", "||", "!"},
        "@punctuation.bracket": {"(", ")", "[", "]", "{", "}"},
        "@punctuation.delimiter": {",", ";", ":", "::", "."},
    }
    listed = [f"[{' '.join(map(json.dumps, sorted(words)))}] {name}" for name, words in rows.items()]
    types = " ".join(json.dumps(name) for name in TYPE_NAMES if name != "Tensor")
    return "\n".join(
        [
            "; Written by editors/grammars.py from the compiler's own tables; do not edit.",
            "; What stands further down counts more.",
            "",
            "(identifier) @variable",
            *listed,
            "",
            "[(line_comment) (block_comment)] @comment",
            "(string) @string",
            "(escape) @string.escape",
            "(number) @number",
            "(tuple_index) @number",
            "(boolean) @boolean",
            "",
            "(type_identifier) @type",
            f"((type_identifier) @type.builtin (#any-of? @type.builtin {types}))",
            '"Tensor" @type.builtin',
            "(dimension) @variable.parameter",
            "",
            "(field_identifier) @property",
            "(shorthand) @property",
            "(parameter name: (identifier) @variable.parameter)",
            "(closure_parameter name: (identifier) @variable.parameter)",
            "(named_argument name: (identifier) @variable.parameter)",
            "(import_item module: (identifier) @module)",
            "(function_item name: (identifier) @function)",
            "(call function: (identifier) @function.call)",
            f"((identifier) @function.builtin (#any-of? @function.builtin {quoted}))",
            "",
        ]
    )


#: What is written, by path below this folder.
WRITTEN = {
    "vscode/syntaxes/mind.tmLanguage.json": surface_grammar,
    "vscode/syntaxes/mind-ir.tmLanguage.json": core_grammar,
    "vscode/syntaxes/ptir.tmLanguage.json": ptir_grammar,
    "tree-sitter-mind/queries/highlights.scm": highlights,
}


if __name__ == "__main__":
    for path, make in WRITTEN.items():
        (FOLDER / path).write_text(make(), encoding="utf-8")
