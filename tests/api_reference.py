"""Writes the page of the public API from its docstrings: `python tests/api_reference.py > docs/api.md`."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import griffe

import mind_mlir

if TYPE_CHECKING:
    from collections.abc import Iterator

    Documented: TypeAlias = griffe.Class | griffe.Function | griffe.Attribute

ROOT = Path(__file__).resolve().parents[1]
_HEAD = """\
# The public API

<!-- Written by `python tests/api_reference.py`; do not edit. -->

Every name of `mind_mlir`, with the package that it is defined in. The functions of `mind_mlir.numpy` have
[a page of their own](numpy.md), and [python.md](python.md) shows how functions of Python are traced.
"""
#: A module of the package's, and what its names are, in the order of the page.
_TOPICS = {
    "languages": "Programs",
    "ir": "Modules and types",
    "builders": "Making modules",
    "tracing": "Functions of Python",
    "models": "Models of other frameworks, and weights",
    "runtime": "Compiling and running",
    "interpreter": "Interpreting",
    "collectives": "Arrays on many processes",
    "planning": "Plans for many machines",
    "quantization": "Weights of few bits",
    "passes": "Passes",
    "packaging": "Artefacts",
    "conversion": "Conversion targets",
    "ops": "Custom calls",
    "diagnostics": "Diagnostics and exceptions",
}
#: Longest line of a signature before it is written one parameter a line.
_WIDTH = 100


class _Dataclasses(griffe.Extension):
    """Has griffe take the package's decorator of dataclasses for the standard library's, which it knows."""

    def on_class_members(self, *, cls: griffe.Class, **_: object) -> None:
        """Give the decorator of a class the name that it goes by elsewhere."""
        known = griffe.ExprName("dataclasses.dataclass")
        for decorator in cls.decorators:
            value = decorator.value
            if isinstance(value, griffe.ExprCall) and str(value.function) == "dataclass":
                decorator.value = griffe.ExprCall(known, value.arguments)
            elif str(value) == "dataclass":
                decorator.value = known


def page() -> str:
    """Return the page, as Markdown."""
    package = griffe.load(
        "mind_mlir",
        search_paths=[ROOT],
        docstring_parser="google",
        extensions=griffe.load_extensions(_Dataclasses()),
    )
    by_topic: dict[str, list[Documented]] = {topic: [] for topic in _TOPICS}
    for name in sorted(mind_mlir.__all__, key=str.lower):
        found = package[name]
        target = found.final_target if found.is_alias else found
        by_topic[target.path.split(".")[1]].append(target)
    parts = [_HEAD]
    for topic, members in by_topic.items():
        parts.append(f"\n## {_TOPICS[topic]}\n")
        for member in members:
            parts += _entry(member)
    return "".join(parts)


def _entry(target: Documented) -> Iterator[str]:
    yield f"\n### `{target.name}`\n\nOf `{target.module.path}`.\n"
    if isinstance(target, griffe.Function):
        yield _signature(target)
    elif isinstance(target, griffe.Class) and isinstance(
        made := target.members.get("__init__"), griffe.Function
    ):
        yield _signature(made, target.name)
    yield from _docstring(target)
    if not isinstance(target, griffe.Class):
        return
    for member in _members(target):
        if isinstance(member, griffe.Function):
            yield f"\n#### `{target.name}.{member.name}`\n"
            yield _signature(member)
        else:
            annotation = f": {member.annotation}" if member.annotation else ""
            yield f"\n#### `{target.name}.{member.name}{annotation}`\n"
        yield from _docstring(member)


def _members(target: griffe.Class) -> Iterator[griffe.Function | griffe.Attribute]:
    """Yield the public members of a class that say what they are, its own and those of its bases."""
    for name, member in sorted(target.all_members.items()):
        if name.startswith("_") and name != "__call__":
            continue
        found = member.final_target if isinstance(member, griffe.Alias) else member
        if found.docstring is not None and isinstance(found, griffe.Function | griffe.Attribute):
            yield found


def _signature(function: griffe.Function, name: str = "") -> str:
    parameters: list[str] = []
    star = False
    for each in _parameters(function):
        if each.name in {"self", "cls"}:
            continue
        kind = each.kind.value if each.kind else ""
        prefix = {"variadic positional": "*", "variadic keyword": "**"}.get(kind, "")
        if kind == "keyword-only" and not star:
            parameters.append("*")
        star = star or kind in {"keyword-only", "variadic positional"}
        annotation = f": {each.annotation}" if each.annotation else ""
        default = f" = {each.default}" if each.default is not None and not prefix else ""
        parameters.append(f"{prefix}{each.name}{annotation}{default}")
    result = f" -> {function.returns}" if function.returns and not name else ""
    line = f"{name or function.name}({', '.join(parameters)}){result}"
    if len(line) > _WIDTH:
        listed = "".join(f"    {each},\n" for each in parameters)
        line = f"{name or function.name}(\n{listed}){result}"
    return f"\n```\n{line}\n```\n"


def _described(function: Documented) -> object:
    """Return a public function that shows more than its text says: the options of a compilation."""
    is_public = (
        function.parent is not None and function.parent.is_module and function.name in mind_mlir.__all__
    )
    found = getattr(mind_mlir, function.name) if is_public else None
    return found if "__signature__" in getattr(found, "__dict__", ()) else None


def _parameters(function: griffe.Function) -> Iterator[griffe.Parameter]:
    live = _described(function)
    written = [each for each in function.parameters if live is None or each.name != "options"]
    yield from written
    if callable(live):
        for each in inspect.signature(live).parameters.values():
            if each.name not in [known.name for known in written]:
                kind = griffe.ParameterKind.keyword_only
                yield griffe.Parameter(
                    each.name, annotation=each.annotation, kind=kind, default=repr(each.default)
                )


def _docstring(target: Documented) -> Iterator[str]:
    if target.docstring is None:
        return
    live = _described(target)
    docstring = target.docstring
    if live is not None:
        text, quiet = inspect.getdoc(live) or "", griffe.GoogleOptions(warnings=False)
        docstring = griffe.Docstring(text, parser="google", parser_options=quiet, parent=target)
    for section in docstring.parsed:
        if isinstance(section, griffe.DocstringSectionText):
            yield f"\n{_plain(section.value)}\n"
            continue
        if isinstance(section, griffe.DocstringSectionAdmonition):
            yield f"\n{_plain(section.value.description)}\n"
            continue
        yield f"\n**{section.kind.value.title()}**\n\n"
        for each in section.value:
            name = getattr(each, "name", "") or getattr(each, "annotation", None)
            label = f"`{name}`: " if name and section.kind.value not in {"returns", "yields"} else ""
            yield f"- {label}{_plain(each.description)}\n"


def _plain(text: str) -> str:
    """Return a docstring's text as Markdown, in one line a paragraph."""
    paragraphs = text.replace("``", "`").split("\n\n")
    indented = ("    ", ">>>")
    return "\n\n".join(
        f"```\n{each}\n```" if each.startswith(indented) else " ".join(each.split()) for each in paragraphs
    )


if __name__ == "__main__":
    sys.stdout.write(page())
