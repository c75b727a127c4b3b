"""Packages read one another in one direction, whatever an import is for; their tests lie as they do."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).parents[1]
PACKAGE = "mind_mlir"

#: Packages, modules of the top one, and modules with a layer of their own, from the bottom up: each may read
#: those before it.
LAYERS = (
    "support",
    *("diagnostics.catalogue", "diagnostics"),
    "target",
    *("ir", "ir.analysis"),
    "collectives",
    "mlir",
    "ops",
    "builders",
    "builders.compositions",
    *("outputs", "image", "cache"),
    *("languages.source", "languages.text", "languages.core"),
    *("passes.record", "passes.canonical", "passes.structure", "passes.layers", "passes.recompute"),
    *("passes.simplify", "passes.layouts", "passes.planes", "passes.stacks", "passes.overlap"),
    *("passes.optimize", "passes.partition", "passes"),
    "passes.reduction",
    "languages.kind",
    *("languages.ptir", "languages.stablehlo.rules", "languages.stablehlo", "languages.staging"),
    *("languages.mind.syntax", "languages.mind.formatting", "languages.mind.elaboration", "languages.mind"),
    *("languages.programs", "languages"),
    "arguments",
    "interpreter",
    *("lowering.dialect.opviews", "lowering.dialect"),
    *("lowering.emission", "lowering.kernels", "lowering.schedule.linalg_view"),
    *("lowering.schedule.scalars", "lowering.schedule.folds"),
    *("lowering.schedule.fusion.groups", "lowering.schedule.fusion.nests"),
    *("lowering.schedule.fusion.row_programs", "lowering.schedule.fusion"),
    *("lowering.schedule.kind", "lowering.schedule.movement"),
    *("lowering.schedule.contraction", "lowering.schedule.attention"),
    *("lowering.schedule.quantized", "lowering.schedule.windows", "lowering.schedule.scans"),
    "lowering.schedule.shared",
    "lowering.schedule",
    *("lowering.math", "lowering.buffers", "lowering.functions"),
    *("lowering.profiling", "lowering"),
    "codegen",
    *("conversion.buffers", "conversion.c", "conversion.stablehlo", "conversion"),
    *("runtime", "profiling", "planning"),
    "models.weights",
    "packaging",
    "tracing",
    "distributed",
    "numpy",
    *("models", "models.functions"),
    *("models.onnx.graphs", "models.onnx.rules", "models.onnx"),
    *("models.torch.graph", "models.torch.rules", "models.torch"),
    "quantization",
    "",  # the public names
    "cmake",
    *("tools.comparison", "tools.children", "tools.reducing", "tools.doctor"),
    *("tools.explorer", "tools.notebooks", "tools.interruption"),
    *("tools.cli", "tools.lsp", "tools.opt", "tools"),
    "__main__",
)

#: Modules that read a layer above, with the reason.
EXCEPTIONS = {
    (
        "tracing.numpy_functions",
        "numpy",
    ): "numpy's functions of a traced array are ours; loaded where they are called",
    (
        "ir.attributes",
        "languages.core",
    ): "str() of a literal is its text; the printer is loaded where it is called",
    (
        "ir.operation",
        "languages.core",
    ): "str() of an operation is its text; the printer is loaded where it is called",
    (
        "ir.module",
        "languages.core",
    ): "str() of a module is its text; the printer is loaded where it is called",
    (
        "ir.terminators",
        "languages.core",
    ): "str() of a terminator is its text; the printer is loaded where it is called",
    ("target.named", "profiling"): "what measures this machine is loaded where its rates are asked for",
    ("passes.forms", "passes.reduction"): "a bug of the compiler is reduced where it is reported",
    ("runtime.executable", "profiling"): "what measures calls is loaded where a profile is wanted",
    ("runtime.staged", "profiling"): "the type of a profile",
    ("runtime.staged_method", "profiling"): "the type of a profile",
    ("runtime.executable", "tools.explorer"): "what makes the page is loaded where one is wanted",
    ("runtime.lowered", "tools.explorer"): "what makes the page is loaded where one is wanted",
    ("runtime.staged", "tools.explorer"): "the type of a page",
    ("runtime.staged_method", "tools.explorer"): "the type of a page",
}

#: Layers without a row of their own in the page of the layout: parts, and what every package has.
NO_ROW = {
    "",
    "__main__",
    "conversion.buffers",
    "conversion.c",
    "conversion.stablehlo",
    "diagnostics.catalogue",
    "languages",
    "languages.mind.elaboration",
    "languages.mind.formatting",
    "languages.mind.syntax",
    "languages.stablehlo.rules",
    "lowering.dialect.opviews",
    "lowering.profiling",
    "models.onnx.graphs",
    "models.onnx.rules",
    "models.torch.graph",
    "models.torch.rules",
    "passes.canonical",
    "passes.layers",
    "passes.layouts",
    "passes.optimize",
    "passes.overlap",
    "passes.partition",
    "passes.planes",
    "passes.stacks",
    "passes.recompute",
    "passes.record",
    "passes.simplify",
    "passes.structure",
} | {layer for layer in LAYERS if layer.startswith("lowering.schedule.")}


class Import(NamedTuple):
    importer: str
    imported: str
    line: int


def layer_of(module: str) -> str:
    """Return the longest layer that is ``module`` or holds it."""
    holding = [layer for layer in LAYERS if module == layer or module.startswith(f"{layer}.")]
    return max(holding, key=len)


def modules(root: Path) -> dict[str, Path]:
    """Return the files of a package by their names below it; the package's own is the empty name."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(part for part in parts if part != "__init__")] = path
    return found


@cache
def imports(root: Path) -> tuple[Import, ...]:
    """Return all imports of modules of the package at ``root`` by one another, those for types included."""
    names = modules(root)
    return tuple(
        Import(importer, imported, getattr(node, "lineno", 0))
        for importer, path in names.items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for imported in _targets(node, root.name, names)
    )


def _targets(node: ast.AST, package: str, names: Iterable[str]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        listed = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.level == 0:
        listed = [f"{node.module}.{alias.name}" for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        raise AssertionError(f"line {node.lineno}: say where from: this project's imports are absolute")
    else:
        return
    for name in listed:
        if name != package and not name.startswith(f"{package}."):
            continue
        below = name.removeprefix(package).removeprefix(".")
        yield below if below in names else below.rpartition(".")[0]


def upward(found: Iterable[Import]) -> list[str]:
    """Return what reads a layer above its own, as messages."""
    return [
        f"{importer}:{line} reads {imported}"
        for importer, imported, line in found
        if LAYERS.index(layer_of(imported)) > LAYERS.index(layer_of(importer))
        and (importer, layer_of(imported)) not in EXCEPTIONS
    ]


def test_every_package_is_a_layer() -> None:
    root = ROOT / PACKAGE
    files = modules(root)
    packages = {".".join(path.parent.relative_to(root).parts) for path in files.values()}
    alone = {name for name, path in files.items() if path.parent == root}
    assert packages | alone <= set(LAYERS) <= files.keys()


def test_no_package_reads_one_above_it() -> None:
    assert upward(imports(ROOT / PACKAGE)) == []


def test_every_exception_is_needed() -> None:
    found = {(importer, layer_of(imported)) for importer, imported, _ in imports(ROOT / PACKAGE)}
    assert EXCEPTIONS.keys() <= found


def test_exceptions_wait_until_they_are_called() -> None:
    """An exception must not be one of the imports that run when the module is loaded."""
    paths = modules(ROOT / PACKAGE)
    for importer, layer in EXCEPTIONS:
        tree = ast.parse(paths[importer].read_text(encoding="utf-8"))
        loaded = [name for node in tree.body for name in _targets(node, PACKAGE, paths)]
        assert layer not in map(layer_of, loaded)


def test_the_page_of_the_layout_has_the_layers_in_order() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(rf"^\| `{PACKAGE}/([^`]+)` \|", page, re.MULTILINE)
    assert [row.removesuffix(".py").replace("/", ".") for row in rows] == [
        layer for layer in LAYERS if layer not in NO_ROW
    ]


def test_the_picture_of_the_packages_has_them_all() -> None:
    picture = (ROOT / "docs" / "packages.svg").read_text(encoding="utf-8")
    shown = re.findall(r'font-weight="bold">(\w+)</text>', picture)
    packages = {layer for layer in LAYERS if (ROOT / PACKAGE / layer / "__init__.py").is_file()} - {""}
    assert sorted(shown) == sorted(packages)


def test_the_map_of_the_scheduling_stage_has_its_folders_in_order() -> None:
    page = (ROOT / "docs" / "schedule.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| `([\w/]+)` \|.*\| (.*) \|$", page, re.MULTILINE)
    rows = [(f"lowering.{folder}".replace("/", "."), text) for folder, text in cells]
    beneath = ["lowering.emission", "lowering.kernels"]
    inside = beneath + [layer for layer in LAYERS if layer.startswith("lowering.schedule.")]
    assert [folder for folder, _ in rows] == inside
    named = {f"{folder}.{name}" for folder, text in rows for name in re.findall(r"`(\w+)`", text)}
    assert {name for name in modules(ROOT / PACKAGE) if name.rpartition(".")[0] in inside} == named


def test_tests_lie_as_the_packages_do() -> None:
    tests = ROOT / "tests"
    folders = {path.parent.relative_to(tests).as_posix() for path in tests.rglob("*.py")} - {"."}
    others = {folder for folder in folders if not (ROOT / PACKAGE / folder / "__init__.py").is_file()}
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert sorted(others) == re.findall(r"^\| `tests/([^`]+)` \|", page, re.MULTILINE)


def test_files_of_tests_have_names_of_their_own() -> None:
    """Without `__init__.py`, a module of tests is imported by the name of its file alone."""
    names = Counter(path.stem for path in (ROOT / "tests").rglob("*.py"))
    assert [name for name, count in names.items() if count > 1] == []


def test_no_folder_of_tests_is_a_package() -> None:
    """With `__init__.py`, a folder such as `tests/numpy` would be imported in place of numpy."""
    assert list((ROOT / "tests").rglob("__init__.py")) == []


def test_imports_of_every_kind_are_seen(tmp_path: Path) -> None:
    root = tmp_path / PACKAGE
    sources = {
        "ir/types.py": "from mind_mlir import ops\nimport mind_mlir.tools.cli.main",
        "ops/__init__.py": "",
        "ops/opdef.py": "if TYPE_CHECKING:\n    from mind_mlir.passes.verify import verify",
        "passes/verify.py": "def f():\n    from mind_mlir.ops.opdef import OpDef, lowering\n    import cli",
        "tools/cli/main.py": "from mind_mlir import ops, parse",
    }
    for name, source in sources.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(source)
    found = defaultdict(set)
    for importer, imported, _ in imports(root):
        found[importer].add(imported)
    assert found == {
        "ir.types": {"ops", "tools.cli.main"},
        "ops.opdef": {"passes.verify"},
        "passes.verify": {"ops.opdef"},
        "tools.cli.main": {"ops", ""},
    }
    assert upward(imports(root)) == [
        "ir.types:1 reads ops",
        "ir.types:2 reads tools.cli.main",
        "ops.opdef:2 reads passes.verify",
    ]
