"""The process that does the server's work: `python -m mind_mlir.tools.lsp.worker`.

Whatever a program makes the process do, it ends when its time is over, and when the server does.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import traceback
from importlib import import_module
from typing import BinaryIO

from mind_mlir.tools.lsp import checks
from mind_mlir.tools.lsp.wire import HEAD, packed

#: Seconds beyond those that the server waits.
_GRACE = 5
#: The modules of the jobs, which are loaded when there is one.
_JOBS = dict.fromkeys(("run", "gradient"), "mind_mlir.tools.lsp.runs") | {"check": checks.__name__}


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests, each a job, the seconds that it may take and its arguments, while there are any."""
    while len(head := requests.read(HEAD.size)) == HEAD.size:
        job, seconds, arguments = pickle.loads(requests.read(*HEAD.unpack(head)))  # noqa: S301 -- the server wrote it
        signal.alarm(seconds + _GRACE)
        try:
            answer: tuple[str, object] = ("done", getattr(import_module(_JOBS[job]), job)(*arguments))
        except Exception:
            answer = ("failed", traceback.format_exc())
        signal.alarm(0)
        answers.write(packed(answer))
        answers.flush()
        gc.collect(0)  # while nobody waits


def main() -> None:
    """Serve the process that has started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends this process
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anything prints is no answer
    gc.disable()
    serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
