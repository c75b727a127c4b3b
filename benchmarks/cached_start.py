"""How long a process takes to the first result of a program whose code is kept, beside jax's cache on disk.

The program is a block of GPT-2 (`gpt2_block` of `benchmarks.peers`), for us a file of Core IR. Every process
is a fresh one, by turns; times include Python's own start, and end with the result. ``hit`` is what the same
process takes to compile the program once more, after reading it again. With micro-kernels kept, others have
been compiled before that call the same ones, but not this program. jax is measured where the interpreter that
``--peers`` names has it, which is this one by default.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks.command import parser, show
from benchmarks.peers.programs import program
from benchmarks.peers.workloads import WORKLOADS
from benchmarks.report import Report
from mind_mlir.cache.inspection import look_through
from mind_mlir.cache.removal import remove

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.report import Row

_ROOT = Path(__file__).parents[1]
#: All weights are zero: then the block returns what it is given.
_OURS = """
import time; start = time.perf_counter()
import json, sys
import numpy as np; times = {"numpy": time.perf_counter()}
import mind_mlir
module = mind_mlir.load(sys.argv[1]); times["load"] = time.perf_counter()
block = mind_mlir.compile(module); times["compile"] = time.perf_counter()
arrays = [np.zeros(each.type.shape, np.float32) for each in block.parameters]
arrays[0][:] = 1 + np.arange(arrays[0].size).reshape(arrays[0].shape) % 7
(result,) = block(*arrays); times["call"] = time.perf_counter()
assert np.array_equal(result, arrays[0]) and ("torch_mlir" in sys.modules) == (sys.argv[2] == "new")
again = mind_mlir.load(sys.argv[1])
times["hit"] = time.perf_counter(); mind_mlir.compile(again); end = time.perf_counter()
parts = {name: at - before for (name, at), before in zip(times.items(), [start, *times.values()])}
print(json.dumps({**parts, "hit": end - times["hit"], "result": times["call"]}))
"""
_JAX = """
import time; start = time.perf_counter()
import json, sys
import numpy as np; times = {"numpy": time.perf_counter()}
import jax
from benchmarks.peers.frameworks.jax_functions import jax_function
from benchmarks.peers.references import SEQUENCE, WIDTH
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
class Block: kind = "block"
block = jax.jit(jax_function(Block)); times["load"] = time.perf_counter()
shapes = [(1, SEQUENCE, WIDTH), WIDTH, WIDTH, (WIDTH, 3 * WIDTH), 3 * WIDTH, (WIDTH, WIDTH)]
shapes += [WIDTH, WIDTH, WIDTH, (WIDTH, 4 * WIDTH), 4 * WIDTH, (4 * WIDTH, WIDTH), WIDTH]
arrays = [np.zeros(shape, np.float32) for shape in shapes]
arrays[0][:] = 1 + np.arange(arrays[0].size).reshape(arrays[0].shape) % 7
compiled = block.lower(*arrays).compile(); times["compile"] = time.perf_counter()
result = np.asarray(compiled(*arrays)); times["call"] = time.perf_counter()
assert np.array_equal(result, arrays[0])
jax.clear_caches()
times["hit"] = time.perf_counter(); block.lower(*arrays).compile(); end = time.perf_counter()
parts = {name: at - before for (name, at), before in zip(times.items(), [start, *times.values()])}
print(json.dumps({**parts, "hit": end - times["hit"], "result": times["call"]}))
"""
#: The columns: the whole process, and parts of it.
_PARTS = ("numpy", "load", "compile", "call", "hit")


def measure(peers: str, rounds: int) -> Report:
    """Run every process ``rounds`` times, by turns, after once for what is not counted.

    Args:
        peers: The interpreter that may have jax.
        rounds: How often.
    """
    with TemporaryDirectory() as folder:
        place = Path(folder)
        text = place / "gpt2_block.ir"
        text.write_text(str(program(WORKLOADS["gpt2_block"])), encoding="utf-8")
        processes = _processes(place, text, peers)
        samples: dict[str, list[dict[str, float]]] = {name: [] for name in processes}
        for turn in range(rounds + 1):
            for name, process in processes.items():
                found = process(turn)
                if turn:
                    samples[name].append(found)
    return Report(
        "process start to the first result of a GPT-2 block", [_row(*each) for each in samples.items()]
    )


def _processes(place: Path, text: Path, peers: str) -> Mapping[str, Callable[[int], dict[str, float]]]:
    """Return what runs each kind of process, and says what it took in seconds."""

    def run(command: Sequence[str], cache: Path) -> dict[str, float]:
        # Bytecode is kept, as that of installed packages is.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment |= {"PYTHONPYCACHEPREFIX": str(place / "bytecode"), "MIND_MLIR_CACHE": "on"}
        environment |= {"MIND_MLIR_CACHE_DIR": str(cache)}
        start = time.perf_counter()
        done = subprocess.run(command, env=environment, cwd=_ROOT, check=True, capture_output=True, text=True)  # noqa: S603 - the programs above
        found: dict[str, float] = json.loads(done.stdout or "{}")
        end = found.pop("result", time.perf_counter())  # of one clock for all processes
        return {"process": end - start, **found}

    def ours(which: str, cache: Path) -> dict[str, float]:
        return run([sys.executable, "-c", _OURS, str(text), which], cache)

    def theirs(cache: Path) -> dict[str, float]:
        return run([peers, "-c", _JAX, str(cache)], cache)

    def kernels_alone(turn: int) -> dict[str, float]:
        cache = place / f"kernels{turn}"
        shutil.copytree(kept, cache)
        remove([each.file for each in look_through(cache) if "main" in each.functions])
        return ours("new", cache)

    kept, jax = place / "kept", place / "jax"
    ours("new", kept)
    found: dict[str, Callable[[int], dict[str, float]]] = {
        "python alone": lambda _: run([sys.executable, "-c", "pass"], kept),
        "import numpy": lambda _: run([sys.executable, "-c", "import numpy"], kept),
        "ours, kept": lambda _: ours("kept", kept),
        "ours, micro-kernels kept": kernels_alone,
        "ours, compiled": lambda turn: ours("new", place / f"new{turn}"),
    }
    if subprocess.run([peers, "-c", "import jax"], check=False, capture_output=True).returncode == 0:  # noqa: S603 - as above
        theirs(jax)
        found["jax, kept"] = lambda _: theirs(jax)
        found["jax, compiled"] = lambda turn: theirs(place / f"jax{turn}")
    return found


def _row(name: str, samples: Sequence[Mapping[str, float]]) -> Row:
    def median(part: str) -> float | str:
        """Return milliseconds; nothing where the processes have no such part."""
        times = [each[part] for each in samples if part in each]
        return statistics.median(times) * 1e3 if times else ""

    best = min(each["process"] for each in samples) * 1e3
    parts: Row = {f"{part} ms": median(part) for part in _PARTS}
    return {"process": name, "median ms": median("process"), "best ms": best, **parts}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options_parser = parser("cached_start", __doc__)
    options_parser.add_argument("--rounds", type=int, default=5)
    options_parser.add_argument("--peers", default=sys.executable)
    options = options_parser.parse_args(arguments)
    return show(measure(options.peers, options.rounds), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
