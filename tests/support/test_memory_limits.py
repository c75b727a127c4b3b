"""How much memory a process may use, read from file systems made for it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from mind_mlir.support.resources import memory_left, memory_limit

if TYPE_CHECKING:
    from pathlib import Path

MB = 1 << 20
V1, V2 = "sys/fs/cgroup/memory", "sys/fs/cgroup"
#: What version 1 says where there is no limit.
NONE_1 = "9223372036854771712\n"


def system(root: Path, groups: str, files: dict[str, str]) -> Path:
    for name, text in {"proc/self/cgroup": groups, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("groups", "files", "limit", "left"),
    [
        pytest.param(
            "0::/\n",
            {f"{V2}/memory.max": f"{900 * MB}\n", f"{V2}/memory.current": f"{100 * MB}\n"},
            *(900, 800),
            id="version 2",
        ),
        pytest.param(
            "0::/a/b\n",
            {
                f"{V2}/a/b/memory.max": "max\n",
                f"{V2}/a/memory.max": f"{70 * MB}\n",
                f"{V2}/a/memory.high": f"{50 * MB}\n",
                f"{V2}/a/memory.current": f"{40 * MB}\n",
                f"{V2}/a/memory.stat": f"anon 5\ninactive_file {15 * MB}\nactive_file 9\n",
            },
            *(50, 25),
            id="a group around it that is throttled, and holds pages of files",
        ),
        pytest.param(
            "9:memory:/docker/x\n0::/\n",
            {
                f"{V1}/memory.limit_in_bytes": f"{64 * MB}\n",
                f"{V1}/memory.usage_in_bytes": f"{60 * MB}\n",
                f"{V1}/memory.stat": f"inactive_file 1\ntotal_inactive_file {2 * MB}\n",
            },
            *(64, 6),
            id="version 1, seen from within",
        ),
        pytest.param(
            "9:memory:/x/y\n",
            {
                f"{V1}/x/y/memory.limit_in_bytes": NONE_1,
                f"{V1}/x/memory.limit_in_bytes": f"{32 * MB}\n",
                f"{V1}/x/memory.usage_in_bytes": f"{33 * MB}\n",
            },
            *(32, 0),
            id="version 1, beyond the limit of a group around it",
        ),
        pytest.param(
            "9:memory:/\n",
            {f"{V1}/memory.limit_in_bytes": NONE_1, "proc/meminfo": "MemAvailable: 1024 kB\n"},
            *(None, 1),
            id="no limit",
        ),
        pytest.param("", {f"{V2}/memory.max": f"{8 * MB}\n"}, *(8, None), id="no /proc"),
        pytest.param("0::/\n", {f"{V2}/memory.max": "much\n"}, *(None, None), id="nonsense"),
        pytest.param(
            "3:cpu:/\n", {f"{V1}/memory.limit_in_bytes": "5\n"}, *(None, None), id="another controller"
        ),
    ],
)
def test_limits(
    tmp_path: Path, groups: str, files: dict[str, str], limit: int | None, left: int | None
) -> None:
    made = system(tmp_path, groups, files)
    of_the_machine = memory_limit(tmp_path / "no groups")
    assert memory_limit(made) == (of_the_machine if limit is None else limit * MB)
    assert memory_left(made) == (None if left is None else left * MB)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
@pytest.mark.parametrize("kind", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_limits_of_the_process_count(kind: str) -> None:
    program = (
        "import resource, mind_mlir; from mind_mlir.runtime.memory import pool\n"
        f"resource.setrlimit(resource.{kind}, ({4096 * MB}, {4096 * MB}))\n"
        "print(mind_mlir.memory_info().limit)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(found.stdout) == min(512 * MB, memory_limit() // 8)
