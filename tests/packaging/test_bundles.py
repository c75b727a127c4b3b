"""Bundles in Python: called like compiled modules, and refused where a byte is not as it was written."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from bundles import PROGRAM, copied, say

import mind_mlir
from mind_mlir import ArgumentError, ArtefactError, Bundle, DType, ExecutionError
from mind_mlir.image.loading import host_machine
from mind_mlir.packaging.bundle import replace_directory
from mind_mlir.packaging.loading import read_bundle
from mind_mlir.packaging.manifest import MANIFEST, MOST_BYTES, digest_of

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
N, D = np.array([7, -7, 9], np.int32), np.array(2, np.int32)
I = np.array([3, -4])  # noqa: E741 -- what the program calls it

BLOCKED = """\
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch_mlir", "lark", "click", "rich", "ml_dtypes"):
            raise ImportError(f"{name} is blocked")
sys.meta_path.insert(0, Blocked())
import numpy as np
import mind_mlir
"""

NARROW = """\
func @main(%x: tensor<bf16, 3>) -> tensor<bf16, 3> {
  %1 = add %x, %x -> tensor<bf16, 3>
  return %1
}
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return mind_mlir.package(mind_mlir.parse(PROGRAM), tmp_path_factory.mktemp("made") / "net", threads=1)


@pytest.fixture(scope="module")
def bundle(path: Path) -> Bundle:
    return mind_mlir.load_bundle(path)


def refusal(path: Path, code: str = "E6501") -> str:
    """Return what is said of a bundle that cannot be loaded."""
    with pytest.raises(ArtefactError) as raised:
        mind_mlir.load_bundle(path)
    (found,) = raised.value.diagnostics
    assert found.code == code
    return found.message


def _put(role: str, fields: Any, **facts: object) -> None:
    """Let the fields of a manifest say other facts about a file."""
    fields["files"][role].update(facts)


def test_functions_are_those_of_the_compiled_module(bundle: Bundle) -> None:
    executable = mind_mlir.compile(mind_mlir.parse(PROGRAM))
    for found, expected in zip(bundle(X, n=N, d=D), executable(X, n=N, d=D), strict=True):
        assert found.tobytes() == expected.tobytes()
    (picked,) = bundle["pick"](X, I)
    assert picked.tobytes() == X[[3, 0]].tobytes()
    assert bundle.signature() == executable.signature()
    assert list(bundle.functions) == list(executable.functions)
    sums, quotients = np.empty(4, np.float32), np.empty(3, np.int32)
    assert bundle(X, N, D, out=(sums, quotients)) == (sums, quotients)
    assert quotients.tolist() == [3, -3, 4]
    bound = bundle.bind(X, N, D)
    assert bound()[1].tolist() == [3, -3, 4]
    assert pickle.loads(pickle.dumps(bundle["pick"]))(X, I)[0].tobytes() == picked.tobytes()  # noqa: S301 -- our own


def test_what_goes_wrong_in_a_call_is_said_as_for_compiled_modules(bundle: Bundle) -> None:
    executable = mind_mlir.compile(mind_mlir.parse(PROGRAM))
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("main", {"x": X, "n": N}),
        ("main", {"x": X, "n": N, "d": D, "e": D}),
        ("main", {"x": X.astype(np.float64), "n": N, "d": N}),
        ("main", {"x": X, "n": N, "d": D, "out": (np.empty(4, np.float32), N)}),
        ("main", {"x": X, "n": N, "d": np.int32(0)}),
        ("pick", {"x": X, "i": np.array([0, 4])}),
        ("pick", {"x": X, "i": np.array([-5, 0])}),
    ]
    codes = []
    for name, arguments in wrong:
        said = []
        for function in (bundle[name], executable[name]):
            with pytest.raises((ArgumentError, ExecutionError)) as raised:
                function(**arguments)
            said.append([(each.code, each.message) for each in raised.value.diagnostics])
        assert said[0] == said[1]
        codes += [code for code, _ in said[0]]
    assert codes == ["E6101", "E6102", "E6103", "E6104", "E6106", "E6009", "E6001", "E6001"]
    with pytest.raises(KeyError, match="pick"):
        bundle["no"]


def test_loops_are_shared_by_as_many_threads_as_the_process_is_set_to(tmp_path: Path) -> None:
    program = """\
%0 = Input {name="x"} : tensor<f32[512, 512]>
%1 = Tanh (%0) : tensor<f32[512, 512]>
outputs: %1
"""
    path = mind_mlir.package(mind_mlir.parse(program), tmp_path / "net")
    x = np.linspace(-3, 3, 512 * 512, dtype=np.float32).reshape(512, 512)
    before, found = mind_mlir.get_num_threads(), []
    try:
        for threads in (1, 3):
            mind_mlir.set_num_threads(threads)
            found.append(mind_mlir.load_bundle(path)(x)[0].tobytes())
    finally:
        mind_mlir.set_num_threads(before)
    assert found[0] == found[1] == mind_mlir.compile(mind_mlir.parse(program))(x)[0].tobytes()


SHARED = """\
import gc, sys, weakref
from pathlib import Path
import numpy as np
import mind_mlir
from mind_mlir.packaging import loading
def workers():
    return sum(name(task / "comm") == "mind-mlir\\n" for task in Path("/proc/self/task").iterdir())
def name(place):
    try:
        return place.read_text()
    except OSError:  # it has ended meanwhile
        return ""
made = []
begin = loading.NativeModule.__init__
loading.NativeModule.__init__ = lambda self, image: (begin(self, image), made.append(weakref.ref(self)))[0]
mind_mlir.set_num_threads(3)
x = np.linspace(-3, 3, 512 * 512, dtype=np.float32).reshape(512, 512)
for path in sys.argv[1:] * 4:
    mind_mlir.load_bundle(path)(x)
gc.collect()
print(workers(), sum(each() is not None for each in made))
mind_mlir.set_num_threads(1)
while workers():
    pass
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks at threads")
@pytest.mark.parametrize("kept", [False, True])
def test_bundles_share_the_pool_of_the_process(tmp_path: Path, kept: bool) -> None:
    """It is that of the first bundle where nobody has made one before; others go when they are dropped."""
    paths = []
    for operation in ("Tanh", "Exp", "Log"):
        text = f"""\
%0 = Input {{name="x"}} : tensor<f32[512, 512]>
%1 = {operation} (%0) : tensor<f32[512, 512]>
outputs: %1
"""
        paths.append(str(mind_mlir.package(mind_mlir.parse(text), tmp_path / operation)))
    before = "import mind_mlir.runtime.threads as t; t.parallel_address()\n" if kept else BLOCKED
    done = subprocess.run(
        [sys.executable, "-c", before + SHARED, *paths],
        env={**os.environ, "MIND_MLIR_CACHE": "on", "MIND_MLIR_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.stdout, done.stderr) == (f"2 {0 if kept else 1}\n", "")


def test_every_changed_byte_is_noticed(path: Path, tmp_path: Path) -> None:
    """Two thousand bytes of all files, each changed by itself, and none is used."""
    copy = copied(path, tmp_path)
    files = sorted(copy.iterdir())
    sizes = [each.stat().st_size for each in files]
    choose = random.Random(12)  # noqa: S311 -- the same bytes in each run
    for file, size in zip(files, sizes, strict=True):
        data = file.read_bytes()
        count = min(size, 2000 * size // sum(sizes) + 100)
        with file.open("r+b", buffering=0) as writer:
            for place in choose.sample(range(size), count):
                writer.seek(place)
                writer.write(bytes([data[place] ^ choose.randrange(1, 256)]))
                with pytest.raises(ArtefactError, match="E6501"):
                    read_bundle(copy)
                writer.seek(place)
                writer.write(data[place : place + 1])
    assert read_bundle(copy)
    assert sum(sizes) > 4000


def test_numpy_is_enough(path: Path, tmp_path: Path) -> None:
    """A process without MLIR, parsers and ml_dtypes: calls, natively or not, errors, and changed copies."""
    changed = []
    for number, file in enumerate(sorted(path.iterdir())):
        copy = copied(path, tmp_path / f"{number}")
        data = file.read_bytes()
        (copy / file.name).write_bytes(data[:200] + bytes([data[200] ^ 4]) + data[201:])
        changed.append(str(copy))
    narrow = mind_mlir.parse(NARROW)
    narrow_path = mind_mlir.package(narrow, tmp_path / "narrow", threads=1)
    script = f"""{BLOCKED}
bundle = mind_mlir.load_bundle({str(path)!r})
x = np.ones((4, 3), np.float32)
for _ in range(300):
    (picked,) = bundle["pick"](x, i=[0, 3])
assert picked.tolist() == [[1] * 3] * 2
try:
    bundle["pick"](x, [0, 4])
except mind_mlir.ExecutionError as error:
    assert error.code == "E6001" and "index 4" in str(error)
for copy in {[*changed, str(narrow_path)]}:
    try:
        mind_mlir.load_bundle(copy)
    except mind_mlir.ArtefactError as error:
        print(error.code)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.stderr) == (["E6501"] * len(changed) + ["E6503"], "")
    x = np.array([1, 2, 3], DType.BF16.numpy)
    assert mind_mlir.load_bundle(narrow_path)(x)[0].tolist() == [2, 4, 6]


def test_files_that_are_cut_short_or_gone(path: Path, tmp_path: Path) -> None:
    names = sorted(each.name for each in path.iterdir())
    for name in names:
        copy = copied(path, tmp_path)
        for size in (0, 1, (copy / name).stat().st_size - 1):
            os.truncate(copy / name, size)
            assert name in refusal(copy)
        (copy / name).unlink()
        assert f"{name} is missing" in refusal(copy)
        (copy / name).mkdir()
        assert name in refusal(copy)
        (copy / name).rmdir()
        os.mkfifo(copy / name)  # which nobody writes to: it is not waited for
        assert f"{name} is no file" in refusal(copy)
    assert "nothing of that name" in refusal(tmp_path / "none")
    assert "embedded null" in refusal(Path("\0"))  # a byte, or a character, as Python says
    assert "is a directory" in refusal(path / MANIFEST)


def test_links_and_other_files_are_no_matter(path: Path, tmp_path: Path) -> None:
    copy = copied(path, tmp_path)
    (copy / "README").write_text("not ours")
    (copy / "net.o").rename(tmp_path / "elsewhere.o")
    (copy / "net.o").symlink_to("../elsewhere.o")
    (tmp_path / "link").symlink_to("copy")
    assert mind_mlir.load_bundle(tmp_path / "link")["pick"](X, I)
    (copy / "net.o").unlink()
    (copy / "net.o").symlink_to("net.o")
    assert "net.o cannot be read" in refusal(copy)


def test_sizes_are_believed_of_no_file(path: Path, tmp_path: Path) -> None:
    copy = copied(path, tmp_path)
    for size in (1 << 61, 1 << 40, 0):
        say(copy, partial(_put, "object", bytes=size))
        assert "net.o has" in refusal(copy)
    os.truncate(copy / MANIFEST, MOST_BYTES + 1)  # with a hole that takes no room
    assert f"at most {MOST_BYTES}" in refusal(copy)


CHANGES: list[tuple[str, Callable[[Any], object]]] = [
    ("mind.entry.none", lambda fields: fields["functions"][0].update(symbol="mind.entry.none")),
    ("two functions", lambda fields: fields["functions"][1].update(name="pick")),
    ("two inputs", lambda fields: fields["functions"][0]["parameters"][0].update(name="i")),
    ("more memory", lambda fields: fields["functions"][0]["outputs"][0].update(shape=[1 << 40, 1 << 40])),
    ("a file must be one in the bundle", lambda fields: fields["files"]["object"].update(name="../net.o")),
    ("one name", lambda fields: fields["files"]["header"].update(name="net.o")),
    ("files of a bundle are", lambda fields: fields["files"].pop("object")),
    ("version 3,", lambda fields: fields.update(version=3)),
    ("does not describe a bundle", lambda fields: fields.update(format="other")),
]


@pytest.mark.parametrize(("word", "change"), CHANGES, ids=[word for word, _ in CHANGES])
def test_nonsense_under_a_right_digest(
    word: str, change: Callable[[Any], object], path: Path, tmp_path: Path
) -> None:
    copy = copied(path, tmp_path)
    say(copy, change)
    assert word in refusal(copy)


def test_objects_that_are_none_under_a_right_digest(path: Path, tmp_path: Path) -> None:
    copy = copied(path, tmp_path)
    whole = (copy / "net.o").read_bytes()
    for data in (b"", b"\x7fELF", whole[: len(whole) // 2], b"\0" * len(whole)):
        (copy / "net.o").write_bytes(data)
        digest = digest_of(data)
        say(copy, partial(_put, "object", bytes=len(data), sha256=digest))
        assert "its code cannot be used" in refusal(copy)


def test_code_for_other_machines_is_not_run(path: Path, tmp_path: Path) -> None:
    copy = copied(path, tmp_path)
    other = "aarch64" if host_machine() == "x86_64" else "x86_64"
    say(copy, lambda fields: fields.update(machine=other))
    assert other in refusal(copy, "E6502")
    copy = copied(path, tmp_path)
    say(copy, lambda fields: fields["features"].append("no-such-feature"))
    assert "no-such-feature" in refusal(copy, "E6502")


def test_a_bundle_takes_the_place_of_a_bundle_and_of_nothing_else(path: Path, tmp_path: Path) -> None:
    module = mind_mlir.parse(PROGRAM)
    copy = copied(path, tmp_path)
    (copy / "notes.txt").write_text("mine")
    other = tmp_path / "other"
    other.mkdir()
    (other / "manifest.json").write_text("{}")
    (tmp_path / "file").write_text("mine")
    for place in (copy, other, tmp_path / "file"):
        with pytest.raises(mind_mlir.UnsupportedError, match="E7101"):
            mind_mlir.package(module, place, function="pick", threads=1)
    (copy / "notes.txt").unlink()
    (tmp_path / "link").symlink_to(copy)
    (other / "manifest.json").unlink()
    for place in (copy, tmp_path / "link", other):
        mind_mlir.package(module, place, name="net", function="pick", threads=1)
        assert list(mind_mlir.load_bundle(place).functions) == ["pick"]
    assert (tmp_path / "link").is_symlink()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["copy", "file", "link", "other"]


def test_a_bundle_is_whole_while_it_is_replaced(path: Path, tmp_path: Path) -> None:
    """Who reads a bundle that others replace all the time has one of the two, and never a mixture."""
    first, second = copied(path, tmp_path / "a"), copied(path, tmp_path / "b")
    say(second, lambda fields: fields.update(library="other"))
    (second / "net.h").write_bytes(b"another header")
    record = {
        "name": "net.h",
        "bytes": 14,
        "sha256": mind_mlir.packaging.manifest.digest_of(b"another header"),
    }
    say(second, lambda fields: fields["files"].update(header=record))
    contents = [{file.name: [file.read_bytes()] for file in each.iterdir()} for each in (first, second)]
    place, over = tmp_path / "place", threading.Event()
    replace_directory(place, contents[0], lambda _: True, "")

    def write() -> None:
        while not over.is_set():
            for each in contents:
                replace_directory(place, each, lambda _: True, "")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        found = {read_bundle(place)[0].library for _ in range(200)}
    finally:
        over.set()
        writer.join()
    assert found <= {"net", "other"}
