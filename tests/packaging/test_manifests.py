"""Manifests of bundles: what they say comes back, and nothing else is read as one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mind_mlir.diagnostics.checks import IndexCheck
from mind_mlir.image.entry import Entry
from mind_mlir.image.errors import CodeError
from mind_mlir.ir.interface import Output, Parameter
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.packaging.manifest import BundleFile, Manifest, digest_of, sealed

MATRIX = TensorType(DType.F32, (2, 3))
ENTRY = Entry(
    "main",
    "mind.entry.main",
    (Parameter("x", MATRIX), Parameter("i", TensorType(DType.SI64))),
    (Output("%3", MATRIX),),
    (IndexCheck("Gather", "%3", axis=0, shape=(2, 3)),),
    64,
)
FILES = {"object": BundleFile.of("lib.o", b"code"), "header": BundleFile.of("lib.h", b"")}
MANIFEST = Manifest("lib", "0.1.0", "x86_64", ("avx2",), (ENTRY,), FILES)


def test_what_a_manifest_says_comes_back() -> None:
    assert Manifest.from_bytes(MANIFEST.to_bytes()) == MANIFEST


def test_each_byte_of_a_manifest_counts() -> None:
    data = MANIFEST.to_bytes()
    for place in range(len(data)):
        for flip in (1, 0x20, 0x80):
            changed = data[:place] + bytes([data[place] ^ flip]) + data[place + 1 :]
            with pytest.raises(CodeError):
                Manifest.from_bytes(changed)
        with pytest.raises(CodeError):
            Manifest.from_bytes(data[:place])
    for changed in (data + b"\n", data + data, b"", b"[]", b"\xff" * 100):
        with pytest.raises(CodeError):
            Manifest.from_bytes(changed)


def fields() -> Any:
    return json.loads(MANIFEST.to_bytes())


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the way to each value within an object of JSON."""
    if isinstance(value, (dict, list)):
        keys = value if isinstance(value, dict) else range(len(value))
        return [path, *(found for key in keys for found in places(value[key], (*path, key)))]
    return [path]


NONSENSE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([-1, 1 << 62, 1 << 63, 1 << 100, 1e300, "", "..", "/etc/passwd", "a/b", "\ud800", "\0"]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=4),
    st.recursive(st.none(), lambda each: st.lists(each, max_size=3), max_leaves=4),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


@settings(max_examples=120)
@given(st.data())
def test_nonsense_under_a_right_digest_is_refused_or_harmless(data: st.DataObject) -> None:
    """Whatever well-formed JSON says, it is an error with words, or a manifest that says just that."""
    content = fields()
    del content["sha256"]
    *way, last = data.draw(st.sampled_from(places(content)[1:]))
    parent = content
    for key in way:
        parent = parent[key]
    if data.draw(st.booleans()):
        parent[last] = data.draw(NONSENSE)
    else:
        del parent[last]
    try:
        manifest = Manifest.from_bytes(sealed(content))
    except CodeError:
        return
    assert json.loads(manifest.to_bytes()).keys() == fields().keys()
    for entry in manifest.entries:
        types = [each.type for each in entry.parameters] + [each.type for each in entry.outputs]
        assert all(type_.is_addressable for type_ in types)
    names = [file.name for file in manifest.files.values()]
    assert not any(name.startswith(".") or "/" in name for name in names)


def test_deep_nesting_and_what_is_no_object() -> None:
    for body in (b"[" * 100_000, b"1", b"{", b'{"a": ' + b"9" * 5000):
        with pytest.raises(CodeError):
            Manifest.from_bytes(body + f',\n "sha256": "{digest_of(body)}"\n}}\n'.encode())
