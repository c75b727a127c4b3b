"""How long it takes to come up: fresh processes that do less or more of the work."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from benchmarks.command import parser, show
from benchmarks.report import Report

if TYPE_CHECKING:
    from collections.abc import Sequence

_PARSE = """
module = mind_mlir.parse('''%0 = Input {name="x"} : tensor<f32[4]>
%1 = Exp (%0) : tensor<f32[4]>
outputs: %1
''')
"""

#: What each process runs; every one but the first includes starting Python.
PROGRAMS = {
    "python alone": "pass",
    "import numpy": "import numpy",
    "import mind_mlir": "import mind_mlir",
    "parse and verify": f"import mind_mlir{_PARSE}mind_mlir.verify(module)",
    "import the MLIR bindings": "import mind_mlir.mlir.bindings",
    "compile": f"import mind_mlir{_PARSE}mind_mlir.compile(module)",
}


def measure(repeats: int) -> Report:
    """Run every program ``repeats`` times, in turn."""
    samples: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(repeats):
        for name, program in PROGRAMS.items():
            samples[name].append(_process_seconds(program))
    base = min(samples["python alone"])
    return Report(
        "start-up time of fresh processes",
        [
            {
                "process": name,
                "best ms": min(times) * 1e3,
                "median ms": statistics.median(times) * 1e3,
                "above python ms": (min(times) - base) * 1e3,
            }
            for name, times in samples.items()
        ],
    )


def _process_seconds(program: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True)  # noqa: S603 - the programs above
    return time.perf_counter() - start


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options_parser = parser("import_time", __doc__)
    options_parser.add_argument("--repeats", type=int, default=5)
    options = options_parser.parse_args(arguments)
    return show(measure(options.repeats), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
