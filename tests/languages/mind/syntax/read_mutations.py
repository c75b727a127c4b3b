"""Reads mutated programs, and fails at the first that is misread.

python tests/languages/mind/syntax/read_mutations.py FIRST END
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[4]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from slips import PROGRAMS  # noqa: E402 -- found by the line above

from benchmarks.fuzz_surface import texts  # noqa: E402 -- found by the line above
from benchmarks.mutations import mutated  # noqa: E402 -- found by the line above
from mind_mlir.diagnostics import MindError, SourceText  # noqa: E402 -- found by the line above
from mind_mlir.diagnostics.codes import CATALOGUE  # noqa: E402 -- found by the line above
from mind_mlir.languages.mind.elaboration.scopes import walk  # noqa: E402 -- found by the line above
from mind_mlir.languages.mind.syntax import nodes  # noqa: E402 -- found by the line above
from mind_mlir.languages.mind.syntax.reading import Reading, read  # noqa: E402 -- found by the line above
from mind_mlir.languages.source import decode_source  # noqa: E402 -- found by the line above


def look_at(source: SourceText, reading: Reading) -> None:
    """Check what holds of every text: words are all of it, what is invalid is reported, places are in it."""
    text, position = source.text, 0
    for token in reading.tokens:
        assert text[position : token.start].isspace() or position == token.start, (position, token)
        assert token.start < token.end or token.kind == "end", token
        position = token.end
    assert position == len(text)
    wrong = any(token.kind == "bad" for token in reading.tokens)
    for node in walk(reading.program):
        wrong = wrong or isinstance(node, nodes.Invalid)
        span = getattr(node, "span", nodes.NOWHERE)
        assert span == nodes.NOWHERE or 0 <= span[0] <= span[1] <= len(text), node
    assert reading.findings or not wrong
    places = []
    for finding in reading.findings:
        assert finding.code in CATALOGUE, finding
        if finding.location is not None:
            start, end = finding.location.offsets
            assert 0 <= start < end <= len(text) + 1, finding
            places.append(start)
    assert places == sorted(places)


def main() -> None:
    """Read the mutations with the numbers that the command line gives."""
    first, end = int(sys.argv[1]), int(sys.argv[2])
    programs = [*texts(), *(text.encode() for text in PROGRAMS.values())]
    for number in range(first, end):
        try:
            source = decode_source(mutated(1, number, programs), "mutated.mind")
        except MindError:
            continue
        try:
            look_at(source, read(source))
        except BaseException:
            print(f"mutation {number}: {source.text[:2000]!r}", file=sys.stderr)
            raise


if __name__ == "__main__":
    main()
