"""Runs one of our tools for a lit test: ``python served.py SOCKET TOOL ARGUMENT...``.

A process that has loaded all of the compiler does the work (see `server.py`): loading it takes half a second,
many times what most tests take. It gets our files, arguments, folder and environment, and we end as it does.
Where the hash seed is chosen, the tool is started anew: that is settled at the start of a process.
"""

from __future__ import annotations

import _socket  # `socket` takes as long to load as the rest of this process
import array
import os
import sys


def main() -> int:
    """Return the exit code of the tool."""
    address, tool, *arguments = sys.argv[1:]
    if "PYTHONHASHSEED" in os.environ:
        os.execv(tool, [tool, *arguments])  # noqa: S606 - a tool of ours, without a shell
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.connect(address)
    folder = os.getcwd()  # noqa: PTH109 - pathlib takes as long to load as the rest of this process
    fields = [tool, folder, str(len(arguments)), *arguments]
    fields += [f"{name}={value}" for name, value in os.environ.items()]
    request = b"\0".join(os.fsencode(field) for field in fields)
    files = array.array("i", [0, 1, 2])
    connection.sendmsg(
        [len(request).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files.tobytes())]
    )
    sent = 0
    while sent < len(request):
        sent += connection.send(request[sent:])
    status = connection.recv(1)
    if not status:
        os.write(2, b"the tool died\n")
        return 134
    return status[0]


if __name__ == "__main__":
    sys.exit(main())
