"""`mind-mlir fmt`: files in place, standard input, what would change."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest
from cli_harness import SUM, findings, invoke, succeed

if TYPE_CHECKING:
    from pathlib import Path

UGLY = "fn f( x:f32 )->f32{x+1.0} // why\r\n"
NEAT = "fn f(x: f32) -> f32 {\n    x + 1.0\n} // why\n"
WRONG = "fn f() -> f32 { let x = ; }\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with programs, some of them in folders of it."""
    for name, text in (
        ("b.mind", UGLY),
        ("a.mind", NEAT),
        ("deep/er/c.mind", UGLY),
        (".hidden/d.mind", UGLY),
        ("e.txt", UGLY),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(text.encode())
    return tmp_path


def test_files_are_written_in_place_and_those_that_are_neat_left_alone(folder: Path) -> None:
    before = (folder / "a.mind").stat().st_mtime_ns
    (folder / "link.mind").symlink_to("b.mind")
    (folder / "b.mind").chmod(0o640)
    assert succeed("fmt", folder / "link.mind", folder / "a.mind") == ""
    assert (folder / "b.mind").read_bytes() == NEAT.encode()
    assert stat.S_IMODE((folder / "b.mind").stat().st_mode) == 0o640
    assert (folder / "link.mind").is_symlink()
    assert (folder / "a.mind").stat().st_mtime_ns == before


def test_the_programs_of_a_folder(folder: Path) -> None:
    assert succeed("fmt", folder) == ""
    files = [path for path in folder.rglob("*.*") if path.is_file()]
    neat = [path for path in files if path.read_bytes() == NEAT.encode()]
    assert sorted(path.name for path in neat) == ["a.mind", "b.mind", "c.mind"]


def test_standard_input_goes_to_standard_output() -> None:
    assert succeed("fmt", "-", stdin=UGLY) == NEAT
    assert succeed("fmt", "-", stdin=NEAT) == NEAT
    assert succeed("fmt", "-", stdin="") == ""


def test_another_file(folder: Path) -> None:
    assert succeed("fmt", folder / "b.mind", "-o", folder / "new.mind") == ""
    assert (folder / "new.mind").read_bytes() == NEAT.encode()
    assert (folder / "b.mind").read_bytes() == UGLY.encode()
    assert succeed("fmt", folder / "a.mind", "-o", "-") == NEAT


def test_check_lists_what_would_change_and_changes_nothing(folder: Path) -> None:
    result = invoke("fmt", "--check", folder)
    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout.splitlines() == [str(folder / "b.mind"), str(folder / "deep" / "er" / "c.mind")]
    assert (folder / "b.mind").read_bytes() == UGLY.encode()
    assert succeed("fmt", "--check", folder / "a.mind") == ""
    assert invoke("fmt", "--check", "-", stdin=UGLY).exit_code == 1


def test_diff_shows_it(folder: Path) -> None:
    (folder / "b.mind").write_text("fn f(x: f32) -> f32 {\n  x + 1.0\n} // why")
    name = folder / "b.mind"
    expected = (
        f"--- {name}\n+++ {name} (formatted)\n@@ -1,3 +1,3 @@\n fn f(x: f32) -> f32 {{\n-  x + 1.0\n"
        "-} // why\n\\ No newline at end of file\n+    x + 1.0\n+} // why\n"
    )
    assert succeed("fmt", "--diff", name) == expected
    result = invoke("fmt", "--diff", "--check", name)
    assert (result.exit_code, result.stdout) == (1, expected)
    assert succeed("fmt", "--diff", folder / "a.mind") == ""


def test_what_is_wrong_is_reported_and_costs_no_other_file(folder: Path) -> None:
    (folder / "a.mind").write_text(WRONG)
    (found,) = findings("fmt", folder / "a.mind", folder / "b.mind")
    assert (found["code"], found["span"]["line"], found["span"]["column"]) == ("E1101", 1, 25)
    assert (folder / "a.mind").read_text() == WRONG
    assert (folder / "b.mind").read_bytes() == NEAT.encode()


@pytest.mark.parametrize("text", [SUM, "module {\n}\n", '{"functions": []}', "program p {}", "func @f() {}"])
def test_programs_in_other_languages_have_commands_of_their_own(text: str, folder: Path) -> None:
    (folder / "sum.ir").write_text(text)
    (found,) = findings("fmt", folder / "sum.ir")
    assert found["code"] == "E7001"
    assert "convert" in found["help"]
    assert [each["code"] for each in findings("fmt", "-", stdin=text)] == ["E7001"]


def test_a_folder_without_programs(tmp_path: Path) -> None:
    assert [each["code"] for each in findings("fmt", tmp_path)] == ["E1106"]
    assert [each["code"] for each in findings("fmt", tmp_path / "missing.mind")] == ["E1106"]


@pytest.mark.parametrize("args", [("a", "b", "-o", "c"), ("a", "-o", "c", "--check"), (".", "-o", "c"), ()])
def test_wrong_usage(args: tuple[str, ...]) -> None:
    assert invoke("fmt", *args).exit_code == 2
