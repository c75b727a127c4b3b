"""Objects to shared libraries, by the linker of the system.

The linker is the driver of a C compiler, which knows where the C library is, or else the linker itself. A
library shows the C entry points and nothing else, needs libc and libm alone, and has all symbols bound when
it is loaded.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mind_mlir.image.loading import host_machine
from mind_mlir.outputs.errors import refused
from mind_mlir.packaging.errors import failed_tool, missing_tool
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.diagnostics import ArtefactError

#: The variable that names the compiler to link with, and may hold options for it, as for make.
VARIABLE = "CC"
_DRIVERS = ("cc", "gcc", "clang")
_LINKERS = ("ld", "ld.lld")
#: What a library needs of the system, and where a linker by itself is told to look.
_NEEDED = ("libm.so.6", "libc.so.6")
_FOLDERS = (
    "/lib/{machine}-linux-gnu",
    "/usr/lib/{machine}-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
)
#: Addresses are bound and then protected when the library is loaded, code is never written to, the stack
#: is never code, and what no library defines is an error here rather than where it is loaded.
_KEYWORDS = ("relro", "now", "text", "noexecstack", "defs")
#: A library with a pool of threads stays where a program closes it, for they may be running its code.
_STAYS = "nodelete"
_OTHERWISE = "--emit=object and --emit=bundle need no linker"


@dataclass(frozen=True, slots=True)
class Linker:
    """A program that links.

    Attributes:
        command: The words that it is called with.
        is_driver: Whether that is a compiler, which hands options to its linker.
    """

    command: tuple[str, ...]
    is_driver: bool

    def arguments(self, folder: Path, soname: str, machine: str, *, stays: bool) -> list[str]:
        """Return the command line that links ``in.o`` in ``folder`` to ``out.so`` there."""
        options = [f"-soname={soname}", f"--version-script={folder / 'exports'}"]
        options += ["--as-needed", "--build-id=none"]
        keywords = [word for keyword in (*_KEYWORDS, *[_STAYS] * stays) for word in ("-z", keyword)]
        if self.is_driver:
            options = [word for option in options for word in ("-Xlinker", option)]
            libraries = ["-lm"]
        else:
            places = [Path(place.format(machine=machine)) for place in _FOLDERS]
            libraries = [f"-L{place}" for place in places if place.is_dir()]
            libraries += [f"-l:{name}" for name in _NEEDED]
        paths = ["-o", str(folder / "out.so"), str(folder / "in.o")]
        return [*self.command, "-shared", *options, *keywords, *paths, *libraries]


def shared_library(code: bytes, *, library: str, soname: str, machine: str, threads: bool) -> bytes:
    """Return a shared library with the code of an object.

    Args:
        code: The object, position-independent.
        library: What the names of its C entry points begin with: those are what the library shows.
        soname: What programs that are linked with it look for when they start: the name of its file.
        machine: What it is for, ``x86_64`` or ``aarch64``.
        threads: Whether it has a pool of threads.

    Raises:
        ArtefactError: E6503, there is no linker, or it fails.
        UnsupportedError: E7102, the system gives no place for temporary files, or no descriptors.
    """
    linker = find_linker(machine)
    if linker is None:
        raise _no_linker(machine)
    try:
        return _linked(linker, code, library, soname, machine, threads=threads)
    except OSError as error:
        raise refused("link", error) from error


def _linked(linker: Linker, code: bytes, library: str, soname: str, machine: str, *, threads: bool) -> bytes:
    """Return what a linker makes; an `OSError` where the system refuses something."""
    with tempfile.TemporaryDirectory(prefix="mind-mlir-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "in.o").write_bytes(code)
        (folder / "exports").write_text(f"{{ global: {library}_*; local: *; }};\n", encoding="ascii")
        command = linker.arguments(folder, soname, machine, stays=threads)
        try:
            done = subprocess.run(  # noqa: S603 -- the system's compiler, or the one that CC names
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**os.environ, "LC_ALL": "C"},
                cwd=folder,
                check=False,
            )
        except OSError as error:  # it is no program after all
            raise failed_tool(linker.command[0], 127, error.strerror or str(error)) from None
        made = folder / "out.so"
        if done.returncode or not made.is_file():
            raise failed_tool(linker.command[0], done.returncode, done.stdout.decode(errors="replace"))
        return made.read_bytes()


def find_linker(machine: str, environment: Mapping[str, str] = os.environ) -> Linker | None:
    """Return what links for ``machine``, or None where there is nothing.

    Raises:
        ArtefactError: E6503, the variable CC names what is not there.
    """
    path = environment.get("PATH")
    named = _words(environment.get(VARIABLE, ""))
    if named:
        if shutil.which(named[0], path=path) is None:
            raise missing_tool(
                named[0],
                f"{VARIABLE} names '{named[0]}' to link with, and there is no such program",
                f"unset {VARIABLE}, or let it name a compiler; {_OTHERWISE}",
            )
        return Linker(tuple(named), is_driver=True)
    for names, is_driver in zip(_candidates(machine), (True, False), strict=True):
        for name in names:
            if shutil.which(name, path=path) is not None:
                return Linker((name,), is_driver)
    return None


def _candidates(machine: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the compilers, and the linkers, that may be there for ``machine``."""
    cross = f"{machine}-linux-gnu-gcc"
    return ((*_DRIVERS, cross), _LINKERS) if _is_host(machine) else ((cross,), ())


def _no_linker(machine: str) -> ArtefactError:
    drivers, linkers = _candidates(machine)
    package = "gcc" if _is_host(machine) else f"gcc-{machine.replace('_', '-')}-linux-gnu"
    return missing_tool(
        drivers[0],
        f"a shared library for {machine} needs a linker, and there is none",
        f"install one: 'apt install {package}' on Debian and Ubuntu, 'dnf install {package}' on Fedora; "
        f"or set {VARIABLE}. {_OTHERWISE}",
        [f"looked for: {', '.join((*drivers, *linkers))}"],
    )


def _is_host(machine: str) -> bool:
    return platform.system() == "Linux" and host_machine() == machine


def _words(text: str) -> list[str]:
    """Return the words of what a variable says; as it is where its quotes do not close."""
    try:
        return shlex.split(text)
    except ValueError:
        return [text]
