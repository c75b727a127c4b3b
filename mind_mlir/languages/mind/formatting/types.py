"""Formatting rules of types and patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.languages.mind.formatting.documents import concat
from mind_mlir.languages.mind.formatting.rules import document, listed
from mind_mlir.languages.mind.syntax import nodes

if TYPE_CHECKING:
    from mind_mlir.languages.mind.formatting.documents import Document
    from mind_mlir.languages.mind.formatting.words import Words


@document.register(nodes.Ident)
def _(node: nodes.Ident, words: Words) -> Document:
    return words.take(node.text)


@document.register(nodes.NamedType)
def _(node: nodes.NamedType, words: Words) -> Document:
    return words.take(node.name.text)


@document.register(nodes.Tensor)
def _(node: nodes.Tensor, words: Words) -> Document:
    head = [words.take("Tensor"), words.take("<"), document(node.dtype, words), words.take(","), " "]
    shape = listed(words, "[]", node.dimensions, lambda item: document(item, words)).spread()
    return concat((*head, shape, words.take(">")))


@document.register(nodes.TupleType)
@document.register(nodes.TuplePattern)
def _(node: nodes.TupleType | nodes.TuplePattern, words: Words) -> Document:
    single = len(node.items) == 1
    return listed(words, "()", node.items, lambda item: document(item, words), comma=single).spread()
