"""The process that is timed from importing a library to the first result of a program.

It is started with the library, the name of the program and a number of threads, and says the seconds
as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time


def main(library: str, name: str, threads: int) -> None:
    """Say how long it takes; making the arguments is not counted, nor is what numpy takes to load."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    import numpy as np  # noqa: F401, PLC0415 -- as above

    start = time.perf_counter()
    import mind_mlir  # noqa: PLC0415 -- which is timed
    from benchmarks.unseen.fields import PROGRAMS  # noqa: PLC0415 -- as above

    imported = time.perf_counter() - start
    program = PROGRAMS[name]
    arguments = program.arguments(program.usual)
    start = time.perf_counter()
    if library == "ours":
        mind_mlir.jit(program.ours(), threads=threads)(*arguments)
        start -= imported
    else:
        import jax  # noqa: PLC0415 -- as above

        from benchmarks.unseen.libraries import jax_library  # noqa: PLC0415 -- as above

        known = jax_library()
        jax.block_until_ready(jax.jit(program.of(known))(*map(known.np.asarray, arguments)))
    print(json.dumps({"seconds": time.perf_counter() - start, "error": ""}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
