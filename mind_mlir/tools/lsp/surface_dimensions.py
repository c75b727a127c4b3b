"""Which names of dimensions in a `.mind` text are one: functions have those of structs that they mention."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from mind_mlir.languages.mind.elaboration.scopes import walk
from mind_mlir.languages.mind.syntax import nodes

if TYPE_CHECKING:
    from mind_mlir.tools.lsp.surface_scopes import SurfaceScopes

#: A dimension: the item that says its name, and that.
_Dimension = tuple[str, str]


class _Groups:
    """Dimensions that are the same, each group by one of them."""

    def __init__(self) -> None:
        self._parents: dict[_Dimension, _Dimension] = {}

    def root(self, key: _Dimension) -> _Dimension:
        while (parent := self._parents.setdefault(key, key)) != key:
            key = parent
        return key

    def join(self, one: _Dimension, other: _Dimension) -> None:
        self._parents[self.root(one)] = self.root(other)

    def all(self) -> dict[_Dimension, _Dimension]:
        return {key: self.root(key) for key in list(self._parents)}


def shared_dimensions(tree: nodes.SourceFile, scopes: SurfaceScopes) -> Mapping[_Dimension, _Dimension]:
    """Return, for each name of a dimension in an item, one that stands for all that are the same."""
    names: dict[str, dict[str, None]] = {}
    mentioned: dict[str, dict[str, None]] = {}
    for item in tree.items:
        if isinstance(item, (nodes.Function, nodes.Struct, nodes.Alias)):
            own, others = names.setdefault(item.name.text, {}), mentioned.setdefault(item.name.text, {})
            for each in walk(item):
                own.update(dict.fromkeys(_dimensions(each)))
                if isinstance(each, nodes.NamedType) and each.name.text in scopes.top:
                    others[each.name.text] = None
    groups = _Groups()
    for owner in names:
        for other in _reached(owner, mentioned):
            for name in names.get(other, ()):
                groups.join((owner, name), (other, name))
    return groups.all()


def _dimensions(node: object) -> list[str]:
    """Return the names of dimensions in the type of a tensor."""
    if not isinstance(node, nodes.Tensor):
        return []
    return [each.text for each in node.dimensions if isinstance(each, nodes.Ident)]


def _reached(owner: str, mentioned: Mapping[str, Mapping[str, None]]) -> Iterator[str]:
    """Yield an item, and the types that it is made of."""
    stack, seen = [owner], {owner}
    while stack:
        name = stack.pop()
        yield name
        for each in mentioned.get(name, ()):
            if each not in seen:
                seen.add(each)
                stack.append(each)
