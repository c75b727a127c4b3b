"""Times GPT-2 small, a forward pass, a step of training and a decoded token, beside torch and jax.

    python -m benchmarks.gpt2 [--threads 2] [--layers 12] [--only ours torch]

Each framework runs in a process of its own, with the same weights, in f32. A step of training is the loss and
all its gradients over 128 tokens. Decoding generates 64 tokens after the first one, with a cache; ours and
jax's is one compiled loop, torch's a loop in Python, as people write it. `make .venv-peers/.ready` installs
the others; what is not installed is left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from benchmarks.command import parser, show
from benchmarks.report import Report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.report import Row

FRAMEWORKS = ("ours", "torch", "jax")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table."""
    options_parser = parser("gpt2", __doc__)
    options_parser.add_argument("--threads", type=int, default=2)
    options_parser.add_argument("--layers", type=int, default=12)
    options_parser.add_argument("--only", nargs="+", default=list(FRAMEWORKS), choices=FRAMEWORKS)
    options = options_parser.parse_args(arguments)
    rows: list[Row] = []
    notes = ["seconds: the least of several runs; compiling is apart, and of all three programs"]
    for framework in options.only:
        threads = str(options.threads)
        names = ("MIND_MLIR", "OMP", "MKL", "OPENBLAS")
        settings = {f"{name}_NUM_THREADS": threads for name in names}
        settings["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={str(options.threads > 1).lower()}"
        command = [sys.executable, "-m", f"benchmarks.gpt2.{framework}_gpt2", threads, str(options.layers)]
        done = subprocess.run(  # noqa: S603 -- our own modules
            command, env={**os.environ, **settings}, capture_output=True, text=True, check=False
        )
        if done.returncode:
            notes.append(f"{framework}: {(done.stderr.strip() or 'failed').splitlines()[-1]}")
            continue
        rows.append({"framework": framework, **json.loads(done.stdout.splitlines()[-1])})
    found = Report("GPT-2 small: 128 tokens forward, a step of training, a decoded token", rows, notes)
    return show(found, as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
