"""Loads all of the compiler once, and forks for each tool that a lit test runs: ``python server.py SOCKET``.

It ends with its standard input. What the fork does is what the tool does when it is started: the same main
function, with the files, arguments, folder and environment of whoever asks (see `served.py`).
"""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
import select
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import NoReturn

import filecheck.main

import mind_mlir
from mind_mlir.tools import start

_MAINS = {"mind-mlir": start.mind_mlir, "mind-opt": start.mind_opt, "filecheck": filecheck.main.main}


def main() -> None:
    """Serve until standard input ends."""
    for module in pkgutil.walk_packages(mind_mlir.__path__, "mind_mlir."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()  # else the first collection of each fork would write to all that they share
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them here
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(sys.argv[1])
    listener.listen(64)
    print("ready", flush=True)
    while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            _run(connection)
        connection.close()


def _run(connection: socket.socket) -> NoReturn:
    """Be the tool that is asked for."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, descriptors, _, _ = socket.recv_fds(connection, 4, 3)
    left = int.from_bytes(head, "big")
    request = b""
    while len(request) < left:
        request += connection.recv(left - len(request))
    tool, folder, count, *others = (os.fsdecode(field) for field in request.split(b"\0"))
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variable.split("=", 1) for variable in others[int(count) :])
    sys.argv = [tool, *others[: int(count)]]
    status = 1
    try:
        _MAINS[Path(tool).name]()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        connection.send(bytes([status & 0xFF]))
        os._exit(status)


if __name__ == "__main__":
    main()
