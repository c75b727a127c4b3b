"""Where a name is declared and used, and another name in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol.types import (
    DefinitionParams,
    DocumentHighlight,
    DocumentHighlightKind,
    DocumentHighlightParams,
    Location,
    PrepareRenameParams,
    PrepareRenamePlaceholder,
    ReferenceParams,
    RenameParams,
    TextEdit,
    WorkspaceEdit,
)

from mind_mlir.tools.lsp.refusals import RefusedError

if TYPE_CHECKING:
    from mind_mlir.tools.lsp.documents import Document
    from mind_mlir.tools.lsp.text_index import IndexedName, Occurrence


def definition(document: Document, params: DefinitionParams) -> Location | None:
    """Return where the name at a place is declared."""
    found = document.index.at(document.places.offset(params.position))
    if found is None or found.name.declared is None:
        return None
    return Location(document.uri, document.places.range(found.name.declared))


def references(document: Document, params: ReferenceParams) -> list[Location]:
    """Return where the name at a place stands."""
    found = document.index.at(document.places.offset(params.position))
    every = document.index.of(found.name) if found else []
    wanted = [each for each in every if each.role != "declaration" or params.context.include_declaration]
    return [Location(document.uri, document.places.range(each[:2])) for each in wanted]


def highlights(document: Document, params: DocumentHighlightParams) -> list[DocumentHighlight]:
    """Return where the name at a place stands, and whether it is given a value there."""
    found = document.index.at(document.places.offset(params.position))
    kinds = {"declaration": DocumentHighlightKind.Write, "write": DocumentHighlightKind.Write}
    return [
        DocumentHighlight(document.places.range(each[:2]), kinds.get(each.role, DocumentHighlightKind.Read))
        for each in (document.index.of(found.name) if found else ())
    ]


def prepare_rename(document: Document, params: PrepareRenameParams) -> PrepareRenamePlaceholder:
    """Return what would be renamed.

    Raises:
        RefusedError: There is nothing that can be.
    """
    found = _renamed(document, document.places.offset(params.position))
    return PrepareRenamePlaceholder(document.places.range(found[:2]), found.name.name)


def rename(document: Document, params: RenameParams) -> WorkspaceEdit:
    """Return what has to be changed for the name at a place to be another one.

    Raises:
        RefusedError: It cannot be, or the program would mean something else.
    """
    found = _renamed(document, document.places.offset(params.position))
    name, new = found.name, params.new_name
    if new[:1] not in "%@^" and name.name[0] in "%@^":
        new = name.name[0] + new
    if not document.language.is_name(name, new):
        raise RefusedError(f"'{params.new_name}' is no name: {document.language.names}")
    if new != name.name:
        _check_free(document, name, new)
    edits = [
        TextEdit(document.places.range(each[:2]), _spelled(each, new)) for each in document.index.of(name)
    ]
    return WorkspaceEdit(changes={document.uri: edits})


def _renamed(document: Document, offset: int) -> Occurrence:
    broken = [each for each in document.findings if each.code.startswith("E1")]
    if broken and document.known.text == document.text:
        raise RefusedError(f"some of the file cannot be read: mend that first ({broken[0].message})")
    found = document.index.at(offset)
    if found is None:
        raise RefusedError("there is no name here that is declared in this file")
    name = found.name
    if name.declared is None:
        raise RefusedError(f"'{name.name}' is a name of the language, which keeps it")
    if not document.language.is_name(name, name.name if not name.name[1:].isdigit() else f"{name.name[0]}x"):
        raise RefusedError(f"'{name.name}' keeps its name: {document.language.names}")
    if name.kind == "field" and name.name in document.index.unclear:
        raise RefusedError(
            f"the struct of some '.{name.name}' cannot be told: write the types of what stands before them"
        )
    return found


def _check_free(document: Document, name: IndexedName, new: str) -> None:
    """Refuse a name that means something already where the old one stands, or would mean it then."""
    if name.kind == "field":
        siblings = name.parent.parameters if name.parent else {}
        if new in siblings:
            raise RefusedError(
                f"{name.parent.name if name.parent else 'the struct'} has a field '{new}' already"
            )
        return
    index = document.index
    places, taken = [each.start for each in index.of(name)], index.spans_of(new)
    if any(start <= place <= end for place in places for start, end, _ in taken):
        raise RefusedError(f"'{new}' means something else already where '{name.name}' stands")
    others = [each.start for each in index.occurrences if each.name.name == new and each.name.kind != "field"]
    own = [(start, end) for start, end, found in index.spans_of(name.name) if found is name]
    if any(start <= place <= end for place in others for start, end in own):
        raise RefusedError(f"'{new}' is another name where '{name.name}' can be seen")


def _spelled(occurrence: Occurrence, new: str) -> str:
    """Return what takes the place of a name; a field that is short for a variable, too, says both then."""
    if occurrence.role != "short":
        return new
    old = occurrence.name.name
    return f"{new}: {old}" if occurrence.name.kind == "field" else f"{old}: {new}"
