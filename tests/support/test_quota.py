"""Quotas of control groups, read from file systems made for it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from mind_mlir.support import resources
from mind_mlir.support.resources import read_quota

if TYPE_CHECKING:
    from pathlib import Path

V1 = "sys/fs/cgroup/cpu"


def system(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        pytest.param("0::/\n", {"sys/fs/cgroup/cpu.max": "200000 100000\n"}, 2, id="whole"),
        pytest.param("0::/\n", {"sys/fs/cgroup/cpu.max": "150000 100000\n"}, 2, id="rounded up"),
        pytest.param("0::/\n", {"sys/fs/cgroup/cpu.max": "1000 100000\n"}, 1, id="less than one"),
        pytest.param("0::/\n", {"sys/fs/cgroup/cpu.max": "max 100000\n"}, None, id="no limit"),
        pytest.param("0::/a/b\n", {"sys/fs/cgroup/a/b/cpu.max": "300000 100000\n"}, 3, id="own group"),
        pytest.param(
            "0::/a/b\n",
            {"sys/fs/cgroup/a/b/cpu.max": "300000 100000", "sys/fs/cgroup/a/cpu.max": "100000 100000"},
            1,
            id="a group around it",
        ),
        pytest.param(
            "4:cpu,cpuacct:/docker/x\n0::/\n",
            {f"{V1}/cpu.cfs_quota_us": "250000\n", f"{V1}/cpu.cfs_period_us": "100000\n"},
            3,
            id="version 1, seen from within",
        ),
        pytest.param(
            "4:cpu,cpuacct:/x\n",
            {f"{V1},cpuacct/x/cpu.cfs_quota_us": "50000", f"{V1},cpuacct/x/cpu.cfs_period_us": "100000"},
            1,
            id="version 1, both controllers",
        ),
        pytest.param(
            "1:cpu:/\n",
            {f"{V1}/cpu.cfs_quota_us": "-1\n", f"{V1}/cpu.cfs_period_us": "100000\n"},
            None,
            id="version 1, no limit",
        ),
        pytest.param("2:cpuset:/\n", {f"{V1}set/cpu.max": "100000 100000"}, None, id="another controller"),
        pytest.param("0::/\n", {"sys/fs/cgroup/cpu.max": "0 0\n"}, None, id="zeros"),
        pytest.param("nonsense\n0::/\n", {"sys/fs/cgroup/cpu.max": "1 2 3\n"}, None, id="nonsense"),
    ],
)
def test_quota(tmp_path: Path, groups: str, files: dict[str, str], expected: int | None) -> None:
    assert read_quota(system(tmp_path, {"proc/self/cgroup": groups, **files})) == expected


def test_a_system_without_control_groups_has_no_quota(tmp_path: Path) -> None:
    assert read_quota(tmp_path) is None


def test_no_more_threads_than_the_quota_has_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    monkeypatch.setattr(resources, "quota_cores", lambda: 3)
    assert resources.usable_cores() == 3
    monkeypatch.setattr(resources, "quota_cores", lambda: 100)
    assert resources.usable_cores() == 64
    monkeypatch.setattr(resources, "quota_cores", lambda: None)
    assert resources.usable_cores() == 64
