"""Damaged dumps: reading ends, never raises, loses no line silently, and the shortcut by shape changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analyzer.artifacts import ir_dump
from analyzer.artifacts.ir_nesting import nest
from analyzer.artifacts.ir_scan import count_lines, scan
from analyzer.artifacts.shapes import filler, shape_of, split_numbers
from analyzer.model import ArtifactState, DumpNode

RUNS = Path(__file__).parents[1] / "fixtures" / "runs"
SMALL = 12_000
TEXTS = [text for path in sorted(RUNS.glob("**/ir_*_fusion.txt")) if 0 < len(text := path.read_text()) < SMALL]
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A real dump after a few accidents."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 3))):
        text = draw(st.sampled_from([cut, splice, swap_lines, drop_line, flip, insert]))(draw, text)
    return text


def cut(draw: st.DrawFn, text: str) -> str:
    start, stop = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
    return text[start:stop]


def splice(draw: st.DrawFn, text: str) -> str:
    other = draw(st.sampled_from(TEXTS))
    return text[: draw(st.integers(0, len(text)))] + other[draw(st.integers(0, len(other))) :]


def swap_lines(draw: st.DrawFn, text: str) -> str:
    lines = text.split("\n")
    one, other = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    lines[one], lines[other] = lines[other], lines[one]
    return "\n".join(lines)


def drop_line(draw: st.DrawFn, text: str) -> str:
    lines = text.split("\n")
    del lines[draw(st.integers(0, len(lines) - 1))]
    return "\n".join(lines)


def flip(draw: st.DrawFn, text: str) -> str:
    at = draw(st.integers(0, len(text)))
    return text[:at] + draw(st.sampled_from("\x00\n\r\t '\"()[]{}:=.,;#a0\xe9\U00020005\U000f0001")) + text[at + 1 :]


def insert(draw: st.DrawFn, text: str) -> str:
    at = draw(st.integers(0, len(text)))
    return text[:at] + draw(st.text(max_size=40)) + text[at:]


def everything(nodes: tuple[DumpNode, ...]) -> Iterator[DumpNode]:
    for node in nodes:
        yield node
        yield from everything(node.members)


@QUICK
@given(damaged())
def test_reading_by_shape_equals_reading_plainly(text: str) -> None:
    assert ir_dump.parse(text, "post") == ir_dump.parse_plain(text, "post")


@QUICK
@given(damaged())
def test_every_line_belongs_to_a_node_or_to_a_problem(text: str) -> None:
    found = ir_dump.read_chunks(text, "x")
    nodes, problems = nest(found)
    own_lines = {item.place.line: item.chunk.lines for item in found if item.node}
    kept = sum(
        own_lines[node.location.line] for node in everything(nodes) if node.location and node.node_class != "unknown"
    )
    assert kept + sum(problem.lines for problem in problems) == count_lines(text)


@QUICK
@given(damaged())
def test_places_lie_in_the_text_and_a_partial_dump_says_why(text: str) -> None:
    artifact = ir_dump.parse(text, "x").artifact
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for problem in artifact.problems:
        assert 1 <= problem.location.line <= len(lines)
        assert problem.location.column >= 1
        assert problem.message.startswith("expected ")
    assert (artifact.state in (ArtifactState.PARTIAL, ArtifactState.UNSUPPORTED)) == bool(artifact.problems)


@QUICK
@given(st.text(alphabet="op0_1: AN()\n =[]{},'.cl", max_size=300))
def test_any_text_is_answered(text: str) -> None:
    assert ir_dump.parse(text, "x") == ir_dump.parse_plain(text, "x")


@QUICK
@given(damaged())
def test_chunks_hold_every_line(text: str) -> None:
    assert sum(chunk.lines for chunk in scan(text)) == count_lines(text)


@QUICK
@given(st.text(alphabet="ab %{}0123456789-.\xe9", max_size=60))
def test_a_shape_filled_with_its_numbers_is_the_text(text: str) -> None:
    key, numbers = split_numbers(text)
    assert filler((shape_of(text), "fixed"))(numbers, "", 0) == (text, "fixed")
    assert split_numbers(text.replace("1", "22"))[0] == key
