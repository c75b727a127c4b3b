"""Classes: what they are composed of, and what they are called.

No object is cut over files by a long chain of inheritance, and a name without an underscore stands for one
class.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

PACKAGE = Path(__file__).parents[1] / "mind_mlir"
#: How many of our classes may stand in one chain, the class itself counted.
LONGEST = 3

#: Folders and files whose classes may stand in longer chains, with the reason. Each is needed.
EXCEPTIONS: dict[str, str] = {}

#: The module of the syntax tree, whose nodes other modules name with it: `nodes.Call`.
NODES = "mind_mlir.languages.mind.syntax.nodes"
#: Folders and files whose classes may have the names of others, with the reason.
OWN_NAMES = {
    "lowering/schedule": "what nests and schedules are made of has short names there",
    "lowering/emission": "as above: it is what they are emitted with",
    "lowering/kernels": "as above: it is what they call",
    "languages/mind/syntax/nodes.py": "nodes are named with their module",
}
#: Names that classes outside of those share, with the reason. Each is needed.
SHARED = {
    "Function": "examples of the catalogue import that of Core IR, and that of PTIR",
    "Region": "messages call a builder's that, and examples of the catalogue import that of PTIR",
    "Parameter": "messages call a block's parameter that, and pages show those of an executable",
    "Target": "messages call the target of a branch that; for a processor it is the word of all compilers",
}


class Class(NamedTuple):
    """A class by the name of its module and its own."""

    module: str
    name: str


class Classes:
    """The classes of a package, with their bases as far as they are classes of the package."""

    def __init__(self, root: Path) -> None:
        self.files: dict[str, Path] = {}
        self.imported: dict[Class, Class] = {}
        self._bases: dict[Class, list[ast.expr]] = {}
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root.parent).with_suffix("").parts
            module = ".".join(part for part in parts if part != "__init__")
            self.files[module] = path
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                self._read(module, node)

    def __iter__(self) -> Iterator[Class]:
        return iter(self._bases)

    def chain(self, each: Class) -> list[Class]:
        """Return the longest chain from a class to one that has no base in the package."""
        found = (self._defined(each.module, base) for base in self._bases[each])
        chains = [self.chain(base) for base in found if base is not None]
        return [each, *max(chains, key=len, default=[])]

    def _read(self, module: str, node: ast.AST) -> None:
        if isinstance(node, ast.ClassDef):
            self._bases[Class(module, node.name)] = node.bases
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                own = Class(module, alias.asname or alias.name)
                self.imported[own] = Class(node.module or "", alias.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    self.imported[Class(module, alias.asname)] = Class(alias.name, "")

    def _defined(self, module: str, base: ast.expr) -> Class | None:
        """Return the class of the package that ``base`` names in a module, or None where it is another."""
        if isinstance(base, ast.Subscript):  # a generic class, with its arguments
            return self._defined(module, base.value)
        name, _, member = ast.unparse(base).rpartition(".")
        if name:  # a class of a module that is imported
            outer = self.imported.get(Class(module, name), Class(name, ""))
            module = ".".join(filter(None, outer))
        found = Class(module, member)
        while found not in self._bases and found in self.imported:
            found = self.imported[found]
        return found if found in self._bases else None


def too_long(classes: Classes) -> list[list[Class]]:
    """Return the chains that are longer than they may be."""
    return [chain for chain in map(classes.chain, classes) if len(chain) > LONGEST]


@pytest.fixture(scope="module")
def classes() -> Classes:
    return Classes(PACKAGE)


def exception_of(classes: Classes, each: Class, exceptions: Collection[str] = EXCEPTIONS) -> str | None:
    """Return the one of ``exceptions`` that a class falls under."""
    place = classes.files[each.module].relative_to(PACKAGE)
    return next((name for name in exceptions if place.is_relative_to(name)), None)


def test_no_chain_of_inheritance_is_long(classes: Classes) -> None:
    found = [chain for chain in too_long(classes) if exception_of(classes, chain[0]) is None]
    assert not found, "\n".join(" < ".join(map(".".join, chain)) for chain in found)


def test_every_exception_is_needed(classes: Classes) -> None:
    assert {exception_of(classes, chain[0]) for chain in too_long(classes)} - {None} == EXCEPTIONS.keys()


def shared_names(classes: Classes) -> dict[str, list[str]]:
    """Return the names that several classes have, and the modules of those."""
    homes = defaultdict(list)
    for each in classes:
        if not each.name.startswith("_") and exception_of(classes, each, OWN_NAMES) is None:
            homes[each.name].append(each.module)
    return {name: modules for name, modules in homes.items() if len(modules) > 1}


def test_a_name_stands_for_one_class(classes: Classes) -> None:
    found = shared_names(classes)
    assert found.keys() == SHARED.keys(), found


def test_nodes_with_the_names_of_others_are_named_with_their_module(classes: Classes) -> None:
    nodes = {each.name for each in classes if each.module == NODES}
    elsewhere = {each.name for each in classes if each.module != NODES}
    by_name = {found.name for found in classes.imported.values() if found.module == NODES}
    assert nodes & elsewhere
    assert not nodes & elsewhere & by_name


def test_an_object_has_its_fields_from_the_beginning() -> None:
    """What an object holds is set when it is made: nobody asks whether it is there yet."""
    found = [
        f"{path.relative_to(PACKAGE)}: {ast.unparse(node)}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if asks_whether_it_is_there(node)
    ]
    assert found == []


def asks_whether_it_is_there(node: ast.AST) -> bool:
    """Return whether ``node`` is ``getattr(self, "_name", default)`` or ``hasattr(self, "_name")``."""
    match node:
        case ast.Call(ast.Name("getattr"), [ast.Name("self"), ast.Constant(str(name)), _]):
            return name.startswith("_") and not name.endswith("__")
        case ast.Call(ast.Name("hasattr"), [ast.Name("self"), ast.Constant(str(name))]):
            return name.startswith("_") and not name.endswith("__")
    return False


def test_bases_are_found_through_imports(tmp_path: Path) -> None:
    root = tmp_path / "package"
    sources = {
        "__init__.py": "from package.base import Base as Shown",
        "base.py": "class Base: pass\nclass Other(Exception): pass",
        "one.py": "from package import Shown\nclass Base(Shown): pass",  # of the same name as its base
        "two.py": "import package.one\nclass Two(package.one.Base): pass",
        "three.py": "from package import two as t\nclass Three(Other, t.Two[int]): pass",
    }
    root.mkdir()
    for name, source in sources.items():
        (root / name).write_text(source)
    (found,) = too_long(Classes(root))
    assert [".".join(each) for each in found] == [
        "package.three.Three",
        "package.two.Two",
        "package.one.Base",
        "package.base.Base",
    ]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("getattr(self, '_x', None)", True),
        ("hasattr(self, '_x')", True),
        ("getattr(self, '__qualname__', '')", False),
        ("getattr(self, name)", False),
        ("getattr(node, '_x', None)", False),
    ],
)
def test_questions_for_fields_are_seen(source: str, expected: bool) -> None:
    assert asks_whether_it_is_there(ast.parse(source, mode="eval").body) is expected
