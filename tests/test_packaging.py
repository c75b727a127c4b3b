"""The sdist is the repository: what `make test` needs is in it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import mind_mlir

ROOT = Path(__file__).parents[1]
#: What tools leave in the tree.
LEFTOVERS = (
    *(".git", ".venv*", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis"),
    *("Output", "demo-output", "mind-mlir-reproducer-*"),
    *("node_modules", "package-lock.json", "*.vsix"),
)
#: What building adds to it.
MADE = {"PKG-INFO", "setup.cfg"}


def test_the_sdist_holds_the_tree(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*LEFTOVERS))
    expected = {str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file()}
    build = f"from setuptools import build_meta; build_meta.build_sdist({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=tree, check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        names = [member.name.split("/", 1)[1] for member in file if member.isfile()]
    assert {name for name in names if ".egg-info/" not in name} - MADE == expected - MADE


def test_what_is_met_first_needs_no_checkout(tmp_path: Path) -> None:
    """The first program of the README runs from the wheel alone."""
    tree, site, elsewhere = tmp_path / "tree", tmp_path / "site", tmp_path / "elsewhere"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*LEFTOVERS, "tests", "lit_tests", "benchmarks"))
    elsewhere.mkdir()
    build = f"from setuptools import build_meta; build_meta.build_wheel({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=tree, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    shutil.unpack_archive(wheel, site, "zip")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    program, printed = re.findall(r"```(?:python|text)\n(.*?)```", readme, re.DOTALL)[:2]
    where = "import mind_mlir; print(mind_mlir.__file__)\n"
    found = subprocess.run(
        [sys.executable, "-c", where + program],
        cwd=elsewhere,
        env={**os.environ, "PYTHONPATH": str(site)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert found.stdout == f"{site / 'mind_mlir' / '__init__.py'}\n{printed}"


def test_the_version_is_the_same_wherever_it_stands() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    package = (ROOT / "cmake" / "MindMLIRConfigVersion.cmake").read_text(encoding="utf-8")
    assert project["version"] == mind_mlir.__version__
    assert f'set(PACKAGE_VERSION "{mind_mlir.__version__}")' in package


def test_every_extra_installs_something() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert all(project["optional-dependencies"].values())


def test_the_wheel_holds_what_modules_read() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (package,) = project["tool"]["setuptools"]["package-data"].items()
    (installed,) = project["tool"]["setuptools"]["data-files"].values()
    assert {path for pattern in installed for path in ROOT.glob(pattern)} == set((ROOT / "cmake").iterdir())
    packed = {path for pattern in package[1] for path in (ROOT / package[0]).glob(pattern)}
    needed = {
        path
        for path in (ROOT / package[0]).rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc")
    }
    assert needed <= packed
