"""A checked graph is told as a read one: the same state, lines and problems, whatever happened to the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.artifacts import fx_check, fx_graph
from analyzer.load import load_run
from analyzer.model import Artifact, ArtifactState, Location, Problem

FIXTURES = Path(__file__).parent.parent / "fixtures"
FILES = sorted(FIXTURES.glob("runs/**/fx_graph_*ed.py")) + sorted(FIXTURES.glob("runs/**/fx_graph_readable.py"))
SMALL = [path.read_text(encoding="utf-8") for path in FILES if path.stat().st_size < 20_000]

GRAPH = """class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "f32[8]"):
        # File: m.py:3 in forward, code: y = x.cos()
        cos: "f32[8]" = torch.ops.aten.cos.default(arg0_1);  arg0_1 = None
        cos_1: "f32[8]" = torch.ops.aten.cos.default(cos)
        cos_2: "f32[8]" = torch.ops.aten.cos.default(cos_1)
        return (cos_2,)
"""


@pytest.mark.parametrize("path", FILES, ids=lambda path: "-".join(path.parts[-6:]))
def test_a_whole_file_is_checked_as_it_is_read(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert fx_check.check(text, "x") == fx_graph.parse(text, "x").artifact


def test_lines_of_one_kind_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(fx_check, "parse", lambda text, source: seen.append(text) or fx_graph.parse(text, source))
    longer = GRAPH.replace(
        "        return", '        cos_3: "f32[8]" = torch.ops.aten.cos.default(cos_2)\n        return'
    )
    assert fx_check.check(longer, "x") == Artifact("x", ArtifactState.PARSED, 8)
    assert seen == [GRAPH]


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "message"),
    [
        ("cos.default(cos_1)", "cos.default(cos_1", 6, 53, "not valid Python: '(' was never closed"),
        ("cos.default(cos_1)", "cos.default(07)", 6, 54, "not valid Python: leading zeros in decimal integer"),
        ("        return (cos_2,)\n", "", 6, 60, "expected `return` before the end"),
        ("cos_2,)\n", "cos_2,)\n        cos_9: \"f32[8]\" = torch.ops.aten.cos.default(cos)\n", 8, 9,
         "expected a statement of `forward`"),
    ],
)  # fmt: skip
def test_a_flaw_is_found_at_its_place(old: str, new: str, line: int, column: int, message: str) -> None:
    found = fx_check.check(GRAPH.replace(old, new), "x")
    assert found.state is ArtifactState.PARTIAL
    problem = found.problems[0]
    assert (problem.location, problem.lines) == (Location("x", line, column), 1)
    assert problem.message.startswith(message)
    assert isinstance(problem, Problem)


@settings(max_examples=60, deadline=5_000)
@given(data=st.data())
def test_a_damaged_file_is_checked_as_it_is_read(data: st.DataObject) -> None:
    """Lines swapped, doubled, left out, cut; characters put in."""
    lines = data.draw(st.sampled_from(SMALL)).split("\n")
    one, two = (data.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    column = data.draw(st.integers(0, len(lines[one])))
    junk = data.draw(st.text("()[]{}\"':;,=.# 0127ab_\\\t", max_size=3))
    damaged = data.draw(
        st.sampled_from(
            [
                [*lines[:one], lines[two], *lines[one + 1 :]],
                [*lines[:one], lines[two], *lines[one:]],
                [*lines[:one], *lines[one + 1 :]],
                lines[:one],
                [*lines[:one], lines[one][:column] + junk + lines[one][column:], *lines[one + 1 :]],
            ]
        )
    )
    text = "\n".join(damaged)
    assert fx_check.check(text, "x") == fx_graph.parse(text, "x").artifact


def test_the_graph_before_post_grad_passes_is_read_where_the_later_one_is_missing(tmp_path: Path) -> None:
    folder = tmp_path / "model__0_inference_0.0"
    folder.mkdir()
    (folder / "fx_graph_readable.py").write_text(GRAPH, encoding="utf-8")
    alone = load_run(folder).graphs[0]
    assert alone.readable is not None
    assert [node.name for node in alone.readable.nodes] == ["arg0_1", "cos", "cos_1", "cos_2", "output"]
    (folder / "fx_graph_transformed.py").write_text(GRAPH, encoding="utf-8")
    both = load_run(folder).graphs[0]
    assert both.readable is None
    states = {artifact.file: artifact.state for artifact in both.artifacts}
    assert states["fx_graph_readable.py"] is ArtifactState.PARSED
