"""TORCH_LOGS output: sections free of prefixes, each line with its place in the log, grouped into graphs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.artifacts import fx_graph
from analyzer.artifacts.torch_logs import GRAPH_ORDER, LogSource, graphs, split
from analyzer.model import Location

LOGS = Path(__file__).parent.parent / "fixtures/logs"
PREFIX = "I1130 02:24:17.870000 17118 torch/_inductor/debug.py:796] [0/0] [__ir_pre_fusion] "
DUMP = ("op0: SchedulerNode(ComputedBuffer)", "op0.writes = [MemoryDep('buf0', c0, {c0: 64})]", "", "]")


def prefixed(lines: tuple[str, ...], prefix: str = PREFIX) -> str:
    return "\n".join(f"{prefix}{line}" for line in ("BEFORE FUSION", *lines))


@pytest.mark.parametrize("path", sorted(LOGS.glob("*.log")), ids=lambda path: path.stem)
def test_every_line_of_a_section_is_found_at_its_place(path: Path) -> None:
    log = path.read_text().split("\n")
    sections = split(path.read_text(), "console.log")
    assert sections
    for section in sections:
        for number, line in enumerate(section.text.split("\n")[:-1], 1):
            place = section.place(number)
            assert log[place.line - 1][place.column - 1 :] == line


def test_the_founding_example_has_one_graph_with_all_sections() -> None:
    sections = split((LOGS / "sin_cos-cpu-2.13.log").read_text(), "console.log")
    (graph,) = graphs(sections)
    assert set(graph.sections) == set(GRAPH_ORDER)
    assert graph.origin.compile_id == "0/0"
    assert graph.sections["ir_pre_fusion"].text.startswith("op0: SchedulerNode(ComputedBuffer)\n")
    assert graph.sections["output_code"].text.startswith("# AOT ID: ['0_inference']\n")
    assert (graph.sections["output_code"].written_to or "").endswith(".py")
    printed = graph.sections["post_grad_graphs"]
    assert printed.title == "AFTER POST GRAD"
    parsed = fx_graph.parse(printed.text, "console.log")
    assert parsed.artifact.problems == ()
    assert [node.name for node in parsed.nodes] == ["arg0_1", "cos", "sin", "output"]


def test_forward_and_backward_share_a_compile_id() -> None:
    forward, backward = graphs(split((LOGS / "softmax_train-cpu-2.13.log").read_text(), "console.log"))
    assert forward.origin == backward.origin
    assert "['0_forward']" in forward.sections["output_code"].text
    assert "['0_backward']" in backward.sections["output_code"].text
    assert "attempting fusion (1/" in backward.sections["fusion"].text
    assert "op0" in forward.sections["ir_post_fusion"].text


@pytest.mark.parametrize(
    "prefix",
    [
        PREFIX,
        "[rank0]:" + PREFIX,
        "2026-11-30 02:24 (worker pid=9) [rank0]:" + PREFIX,
        "# " + PREFIX,
        "\x1b[32m" + PREFIX + "\x1b[0m",
        "nductor/debug.py:796] [0/0] [__ir_pre_fusion] ",
        "[__ir_pre_fusion] ",
    ],
)
def test_prefixes_are_taken_off_however_they_are_dressed(prefix: str) -> None:
    (section,) = split(prefixed(DUMP, prefix), "console.log")
    assert section.text == "\n".join(DUMP) + "\n"
    assert section.place(2, 3) == Location("console.log", 3, len(prefix) + 3)


def test_a_tag_cut_in_half_by_a_paste_still_belongs() -> None:
    text = prefixed(DUMP) + "\nre_fusion] op0.sizes = ([64], [])\nunrelated output\n"
    (section,) = split(text, "console.log")
    assert section.text.endswith("]\nop0.sizes = ([64], [])\n")
    assert section.place(5) == Location("console.log", 6, 12)


def test_windows_line_ends_and_trailing_blanks_that_an_editor_took() -> None:
    text = prefixed(DUMP).replace("] \n", "]\n").replace("\n", "\r\n")
    (section,) = split(text, "console.log")
    assert section.text == "\n".join(DUMP) + "\n"


def test_ranks_interleave_without_mixing() -> None:
    zero, one = (prefixed(DUMP, f"[rank{rank}]:" + PREFIX).split("\n") for rank in (0, 1))
    mixed = [line for pair in zip(zero, one, strict=True) for line in pair]
    first, second = split("\n".join(mixed), "console.log")
    assert first.text == second.text == "\n".join(DUMP) + "\n"
    assert (first.origin, second.origin) == (LogSource("0/0", 0, 17118), LogSource("0/0", 1, 17118))
    assert len(graphs([first, second])) == 2


def test_recompiles_and_attempts_are_graphs_of_their_own() -> None:
    text = "\n".join(prefixed(DUMP, PREFIX.replace("0/0", compile_id)) for compile_id in ("0/0", "1/0_1", "0/1"))
    assert [graph.origin.compile_id for graph in graphs(split(text, "c"))] == ["0/0", "1/0_1", "0/1"]


def test_fusion_messages_after_the_dump_stay_with_their_graph() -> None:
    def tagged(kind: str, text: str) -> str:
        return f"V1130 02:24:17.870000 1 torch/_inductor/scheduler.py:1] [0/0] [__{kind}] {text}"

    log = [
        tagged("ir_pre_fusion", "BEFORE FUSION"),
        tagged("fusion", "===== attempting fusion (1/10): 2 nodes ====="),
        tagged("ir_post_fusion", "AFTER FUSION"),
        tagged("ir_post_fusion", "op0_op1: FusedSchedulerNode(SchedulerNode,SchedulerNode)"),
        tagged("fusion", "late"),
        tagged("fusion", "===== attempting fusion (1/10): 1 nodes ====="),
    ]
    first, second = graphs(split("\n".join(log), "c"))
    assert first.sections["fusion"].text.endswith("late\n")
    assert second.sections["fusion"].lines == (6,)


def test_a_path_is_no_code() -> None:
    tag = "V1130 02:24:17.870000 1 torch/_inductor/graph.py:1] [0/0] [__output_code] "
    log = f"{tag}Output code: \n{tag}import torch\n{tag}Output code written to: /tmp/c.py\n"
    (section,) = split(log, "c")
    assert (section.text, section.written_to) == ("import torch\n", "/tmp/c.py")


@pytest.mark.parametrize("text", ["", "plain output\n", "x[__a]\n", "[__Init__] x"])
def test_logs_without_tags_have_no_sections(text: str) -> None:
    assert all(section.kind == "a" for section in split(text, "c"))


LINES = st.lists(st.text(st.characters(exclude_characters="\r\n\x1b[")), min_size=1)


@given(LINES, st.integers(1, 200))
def test_places_are_exact_for_any_text(lines: list[str], column: int) -> None:
    (section,) = split(prefixed(("start", *lines)), "c")
    assert section.text.split("\n")[1:-1] == lines
    assert section.place(len(lines) + 1, column) == Location("c", len(lines) + 2, len(PREFIX) + column)
