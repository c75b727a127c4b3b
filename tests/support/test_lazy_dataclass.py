"""Classes whose methods are made late behave as those of `dataclasses` do."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import re
from dataclasses import KW_ONLY, FrozenInstanceError, field
from pathlib import Path
from typing import Any

import pytest

import mind_mlir
from mind_mlir.support.lazy_dataclass import dataclass

_OPTIONS: list[dict[str, Any]] = [
    {},
    {"frozen": True},
    {"slots": True},
    {"frozen": True, "slots": True},
    {"eq": False, "slots": True},
    {"frozen": True, "eq": False},
    {"kw_only": True, "slots": True},
    {"repr": False},
    {"slots": True, "weakref_slot": True},
]


def _class(decorator: Any, options: dict[str, Any]) -> Any:
    class Sample:
        """A sample."""

        first: int
        other: list[int] = field(default_factory=list)
        unseen: str = field(default="u", repr=False, compare=False)
        made: int = field(default=7, init=False)
        counted: list[int] = field(default_factory=list, init=False, hash=False)
        _: KW_ONLY
        named: float = 0.5

        def __post_init__(self) -> None:
            self.counted.append(self.first)

    return decorator(**options)(Sample)


def _outcome(call: Any) -> Any:
    try:
        return call()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("options", _OPTIONS, ids=str)
def test_all_that_dataclasses_do(options: dict[str, Any]) -> None:
    late, usual = _class(dataclass, options), _class(dataclasses.dataclass, options)

    def same(call: Any) -> None:
        assert _outcome(lambda: call(late)) == _outcome(lambda: call(usual))

    def shown(made: Any) -> str:
        return repr(made) if options.get("repr", True) else str(dataclasses.astuple(made))

    same(lambda cls: shown(cls(first=1)))
    same(lambda cls: shown(cls(first=1, other=[2], unseen="x", named=2.0)))
    same(lambda cls: cls(1).made)
    same(lambda cls: cls())
    same(lambda cls: cls(first=1, wrong=2))
    same(lambda cls: str(inspect.signature(cls)))
    same(lambda cls: [each.name for each in dataclasses.fields(cls)])
    same(lambda cls: cls.__match_args__)
    same(lambda cls: cls(first=1) == cls(first=1, unseen="x"))
    same(lambda cls: (cls(first=1) == cls(first=2), cls(first=1) != cls(first=1), cls(first=1) == 1))
    same(lambda cls: cls.__hash__ is None)
    same(lambda cls: hash(cls(first=1)) and isinstance(hash(cls(first=1)), int))  # a list has no hash
    same(lambda cls: shown(dataclasses.replace(cls(first=1), first=3, named=1.0)))
    same(lambda cls: shown(copy.deepcopy(cls(first=1))))
    same(lambda cls: setattr(cls(first=1), "first", 2))
    same(lambda cls: _outcome(lambda: setattr(cls(first=1), "new", 2)) is None)
    same(lambda cls: delattr(cls(first=1), "first"))
    same(lambda cls: hasattr(cls(first=1), "__dict__"))
    same(lambda cls: cls.__init__.__qualname__.rpartition(".")[2])


@dataclass(frozen=True, slots=True)
class Point:
    """Two numbers."""

    x: int
    y: int = 2


@dataclass(frozen=True, slots=True)
class Deep(Point):
    """A third one."""

    z: int = 3


@dataclass(slots=True)
class Own:
    """Methods of its own stay."""

    x: int

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 5

    def __repr__(self) -> str:
        return "own"


@dataclass
class Around:
    """What holds itself."""

    inner: Any = None


def test_objects_are_hashed_compared_and_kept() -> None:
    assert {Point(1): "a", Point(1, 3): "b"}[Point(1, 2)] == "a"
    assert pickle.loads(pickle.dumps(Point(4))) == copy.copy(Point(4)) == Point(4)  # noqa: S301 -- our own
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'y'"):
        Point(1).y = 3  # type: ignore[misc]  # which is what is tested


def test_classes_inherit_fields_and_no_equality() -> None:
    assert repr(Deep(1, z=4)) == "Deep(x=1, y=2, z=4)"
    assert Deep(1) != Point(1)
    assert hash(Deep(1)) != hash(Point(1))


def test_methods_of_the_class_stay() -> None:
    assert (repr(Own(1)), hash(Own(1)), Own(1) == Own(2)) == ("own", 5, True)


def test_what_holds_itself_is_shown() -> None:
    around = Around()
    around.inner = around
    assert repr(around) == "Around(inner=...)"


def test_decorated_with_and_without_parentheses() -> None:
    assert Around(1) == Around(inner=1)
    assert Around.__init__ is Around.__init__


def test_all_dataclasses_of_the_package_are_late() -> None:
    usual = re.compile(r"^from dataclasses import [\w, ]*\bdataclass\b|@dataclasses\.dataclass", re.M)
    package = Path(mind_mlir.__file__).parent
    found = {path.name for path in package.rglob("*.py") if usual.search(path.read_text(encoding="utf-8"))}
    assert not found


def test_classes_without_words_need_no_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    """`dataclasses` asks `inspect` for one, which takes milliseconds the first time."""
    monkeypatch.setattr(inspect, "signature", None)
    silent: Any = dataclass(slots=True)(type("Silent", (), {"__annotations__": {"first": "int"}}))
    assert silent(3).first == 3
