"""Operations, as texts of Core IR and PTIR name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.analysis.call_graph import CALL
from mind_mlir.ir.profiles import CORE_FUNCTIONS, CORE_V1
from mind_mlir.languages.core.operations import CALL_KEYWORD
from mind_mlir.languages.core.printer import format_value
from mind_mlir.languages.mind.elaboration.builtins import builtins
from mind_mlir.languages.mind.elaboration.reference import described
from mind_mlir.languages.ptir.schema import compact_names, forms
from mind_mlir.ops import registry
from mind_mlir.tools.cli.reference import signature
from mind_mlir.tools.lsp.text_index import IndexedName

if TYPE_CHECKING:
    from mind_mlir.ops.opdef import OpDef


class OperationNames:
    """The names of operations in one text: each is one thing, wherever the text says it."""

    def __init__(self) -> None:
        self._met: dict[str, IndexedName] = {}
        self._attributes: dict[tuple[OpDef, str], IndexedName] = {}

    def core(self, word: str) -> IndexedName | None:
        """Return the operation that Core IR calls so."""
        return self._found(word, core_record(word))

    def contract(self, word: str, variant: str | None = None) -> IndexedName | None:
        """Return the operation that PTIR calls so: ``dot_general``, or ``ElementwiseUnary`` and ``Exp``."""
        return self._found(word, contract_record(word, variant))

    def attribute(self, operation: IndexedName, word: str) -> IndexedName | None:
        """Return an attribute of an operation."""
        record = operation.record
        found = next((each for each in record.attributes if each.name == word), None) if record else None
        if record is None or found is None:
            return None
        key = record, word
        if key not in self._attributes:
            choices = " | ".join(found.choices) or found.kind.phrase
            default = "" if found.default is None else f" = {format_value(found.default)}"
            self._attributes[key] = IndexedName(
                word, "attribute", signature=f"{word}: {choices}{default}", comment=found.doc
            )
        return self._attributes[key]

    def _found(self, word: str, record: OpDef | None) -> IndexedName | None:
        if record is None:
            return None
        if word not in self._met:
            self._met[word] = IndexedName(
                word, "operation", signature=signature(record), comment=record.summary, record=record
            )
        return self._met[word]


def core_record(word: str) -> OpDef | None:
    """Return the record of an operation as Core IR names it."""
    if word == CALL_KEYWORD:
        return registry.by_opcode()[CALL]
    if word in registry.by_opcode():
        return registry.by_opcode()[word]
    for profile in (CORE_V1, CORE_FUNCTIONS):
        spelling = registry.lookup(word, profile.name)
        if spelling is not None:
            return spelling.record
    return None


def contract_record(word: str, variant: str | None = None) -> OpDef | None:
    """Return the record of an operation as the texts of PTIR name it."""
    if word in compact_names():
        return compact_names()[word][0].record
    variants = forms().get(word, {})
    form = variants.get(variant) or next(iter(variants.values()), None)
    return form.record if form else None


def operation_named(block: str, word: str) -> IndexedName | None:
    """Return the operation that a word is in the language that Markdown calls ``block``."""
    if block == "mind":
        if word not in builtins():
            return None
        text, summary = described(word)
        return IndexedName(word, "operation", signature=text, comment=summary, record=builtins()[word].record)
    word, _, variant = word.rstrip(")").partition("(")
    record = core_record(word) if block == "mind-ir" else contract_record(word, variant or None)
    if record is None:
        return None
    return IndexedName(word, "operation", signature=signature(record), comment=record.summary, record=record)
