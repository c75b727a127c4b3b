"""A pytest plugin: finds out which tests run which lines of a place, and runs chosen tests, best first."""

from __future__ import annotations

import json
import resource
import time
from pathlib import Path
from typing import TYPE_CHECKING

import coverage
import hypothesis
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Bytes of memory that a mutant may take: one that never stops collecting is to fail, not the machine.
_MEMORY = 12 << 30

# A failure is enough: to shrink its example would take minutes.
hypothesis.settings.register_profile(
    "mutants",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
    phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("mutants")
    group.addoption("--mutants-record", metavar="FILE", help="write which test runs which lines")
    group.addoption("--mutants-cover", metavar="FOLDER", help="the lines of which files")
    group.addoption("--mutants-select", metavar="FILE", help="run the tests listed in a file, in its order")


class Recorder:
    """Measures coverage and time, a context a test."""

    def __init__(self, path: Path, place: str) -> None:
        self._path = path
        self._seconds: dict[str, float] = {}
        pattern = place if place.endswith(".py") else f"{place}/*"
        self._coverage = coverage.Coverage(data_file=None, include=[pattern], config_file=False)
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(item.nodeid)
        start = time.perf_counter()
        yield
        self._seconds[item.nodeid] = time.perf_counter() - start
        self._coverage.switch_context("")

    def pytest_unconfigure(self) -> None:
        self._coverage.stop()
        data = self._coverage.get_data()
        root = Path.cwd()
        lines = {
            str(Path(file).relative_to(root)): {
                str(line): sorted(filter(None, tests))
                for line, tests in data.contexts_by_lineno(file).items()
            }
            for file in data.measured_files()
        }
        self._path.write_text(json.dumps({"seconds": self._seconds, "lines": lines}))


class Selector:
    """Runs the tests of a list, in its order."""

    def __init__(self, path: Path) -> None:
        self._order = {name: place for place, name in enumerate(path.read_text().splitlines())}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = [item for item in items if item.nodeid in self._order]
        items[:] = sorted(chosen, key=lambda item: self._order[item.nodeid])


def pytest_configure(config: pytest.Config) -> None:
    hypothesis.settings.load_profile("mutants")
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    record, select = config.getoption("--mutants-record"), config.getoption("--mutants-select")
    if record:
        config.pluginmanager.register(Recorder(Path(record), config.getoption("--mutants-cover")))
    if select:
        config.pluginmanager.register(Selector(Path(select)))
