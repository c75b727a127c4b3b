"""Formatting rules of a file and its items."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.languages.mind.formatting.blocks import joined
from mind_mlir.languages.mind.formatting.documents import SPACE, concat
from mind_mlir.languages.mind.formatting.rules import document, listed
from mind_mlir.languages.mind.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mind_mlir.languages.mind.formatting.blocks import Lines
    from mind_mlir.languages.mind.formatting.documents import Document
    from mind_mlir.languages.mind.formatting.words import Words


def _imports(group: Sequence[nodes.Import], words: Words) -> Document:
    """Return the import of a name, or of several of one module that were written as one."""
    *path, last = group[0].path
    parts: list[Document] = [words.take("import"), " "]
    for name in path:
        parts += (document(name, words), words.take("::"))
    if len(group) == 1:
        parts += (words.drop("{"), document(last, words))
        parts += (words.drop("::"), words.drop("{"), words.drop("}"))  # of m::{a}, and m::{}
    else:
        names = [each.path[-1] for each in group]
        parts.append(listed(words, "{}", names, lambda item: document(item, words)).spread())
    return concat((*parts, words.take(";")))


def _grouped(items: Iterable[nodes.Item]) -> Iterator[list[nodes.Item]]:
    """Yield the items, those together that come of one import."""
    group: list[nodes.Item] = []
    for item in items:
        if group and not (isinstance(item, nodes.Import) and item.span == group[0].span != nodes.NOWHERE):
            yield group
            group = []
        group.append(item)
    if group:
        yield group


@document.register(nodes.Struct)
def _(node: nodes.Struct, words: Words) -> Document:
    head = [words.take("export"), " "] if node.exported else []
    head += (words.take("struct"), " ", document(node.name, words), " ")
    return concat((*head, listed(words, "{}", node.fields, lambda item: _field(item, words)).spread(SPACE)))


def _field(node: nodes.FieldType, words: Words) -> Document:
    return concat((document(node.name, words), words.take(":"), " ", document(node.type, words)))


@document.register(nodes.Alias)
def _(node: nodes.Alias, words: Words) -> Document:
    head = [words.take("export"), " "] if node.exported else []
    head += (words.take("type"), " ", document(node.name, words), " ", words.take("="), " ")
    return concat((*head, document(node.type, words), words.take(";")))


@document.register(nodes.Program)
def _(node: nodes.Program, words: Words) -> Document:
    lines: Lines = []
    before: nodes.Item | None = None
    for group in _grouped(node.items):
        item = group[0]
        first = len(lines)
        lines += words.lines()
        imports = [each for each in group if isinstance(each, nodes.Import)]
        lines.append((words.blank, _imports(imports, words) if imports else document(item, words)))
        if before is not None and _apart(before, item) and not any(blank for blank, _ in lines[first:]):
            lines[first] = True, lines[first][1]
        before = item
    return joined([*lines, *words.lines()])


def _apart(before: nodes.Item, item: nodes.Item) -> bool:
    """Return whether two items have an empty line between them in any case."""
    return type(before) is not type(item) or isinstance(item, nodes.Function)
