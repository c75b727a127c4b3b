# ruff: noqa: F821 -- lit gives this file `config` and `lit_config`
#
# Configuration of the lit tests. `config` and `lit_config` are given by lit, which must be the one of the
# environment that the compiler is installed in: its tools are looked for beside the interpreter.
import atexit
import os
import shlex
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import lit.formats

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent

config.name = "mind-mlir"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".ir", ".ptir", ".mind", ".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = str(HERE)
config.test_exec_root = str(HERE / "Output")


def served_by():
    """Start the process that runs the tools written in Python; return how a test asks it to, as words."""
    folder = tempfile.TemporaryDirectory(prefix="mind-mlir-lit-")
    atexit.register(folder.cleanup)
    address = str(Path(folder.name, "socket"))
    server = subprocess.Popen(  # noqa: S603 - our own server
        [sys.executable, str(HERE / "server.py"), address],
        env=config.environment,
        stdin=subprocess.PIPE,  # it ends when we do
        stdout=subprocess.PIPE,
    )
    if not server.stdout.readline():
        lit_config.fatal("the process that runs the tools did not start")
    return [sys.executable, "-S", "-E", str(HERE / "served.py"), address]


config.environment["NO_COLOR"] = "1"
config.environment["MIND_MLIR_CACHE"] = "off"
# lit hides the surroundings; this one says which processor the tests are for.
if "MIND_MLIR_TARGET" in os.environ:
    config.environment["MIND_MLIR_TARGET"] = os.environ["MIND_MLIR_TARGET"]
config.environment["PATH"] = os.pathsep.join((str(BIN), config.environment.get("PATH", "")))

tools = {
    "%mind-mlir": "mind-mlir",
    "%mind-opt": "mind-opt",
    r"\bFileCheck\b": "filecheck",
    r"\btorch-mlir-opt\b": "torch-mlir-opt",
    "%python": Path(sys.executable).name,
}
SERVED = ("mind-mlir", "mind-opt", "filecheck")
asking = served_by() if hasattr(os, "fork") else []
for pattern, tool in tools.items():
    path = BIN / tool
    if not path.exists():
        lit_config.fatal(f"{tool} is not installed beside {sys.executable}; install mind-mlir[test] there")
    words = [*asking, str(path)] if tool in SERVED else [str(path)]
    config.substitutions.append((pattern, shlex.join(words)))
config.substitutions += [
    ("%irdl", str(HERE.parent / "dialect" / "mind.irdl.mlir")),
    ("%examples", str(HERE.parent / "examples")),
    # The statements that a test keeps in comments, `#! ...`: a program with errors beside the good one.
    ("%errors-of", "sed -n 's/^#! //p'"),
]
if find_spec("capstone") and find_spec("elftools"):
    config.available_features.add("asm")
