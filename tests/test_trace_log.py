"""Structured trace logs: compiles, graphs, lazy payloads, cache events, and damaged lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.artifacts import fx_graph, provenance
from analyzer.artifacts.trace_log import CacheEvent, CompileKey, TraceLog, parse
from analyzer.model import ArtifactState, Location

RUNS = Path(__file__).parent.parent / "fixtures/runs/cpu-2.13"


def fixture(program: str) -> tuple[Path, TraceLog]:
    (path,) = RUNS.glob(f"{program}/torch_compile_debug/tlparse/*.log")
    return path, parse(path, "t.log")


def header(json: str, pid: int = 7) -> str:
    return f"V1130 01:36:30.949000 {pid} torch/_dynamo/utils.py:2350] {json}\n"


def artifact(name: str, payload: str = "", key: str = '"frame_id": 0, "frame_compile_id": 0, "attempt": 0') -> str:
    line = header(f'{{"artifact": {{"name": "{name}", "encoding": "string"}}, {key}, "has_payload": "0"}}')
    return line + "".join(f"\t{text}\n" for text in payload.split("\n"))


def code(aot_id: str) -> str:
    line = header(
        '{"inductor_output_code": {"filename": "/tmp/c.py"}, "frame_id": 0, "frame_compile_id": 0, "attempt": 0, '
        '"has_payload": "0"}'
    )
    return line + f"\t# AOT ID: ['{aot_id}']\n\timport torch\n"


def test_forward_and_backward_of_a_training_step() -> None:
    _, log = fixture("c11_mlp_train")
    assert log.artifact.state is ArtifactState.PARSED
    assert (log.pid, log.torch_version) == (20658, "2.13.0+cpu")
    (compiled,) = log.compiles
    assert (str(compiled.key), compiled.cache) == ("0/0", CacheEvent.DISABLED)
    assert [(graph.kind, graph.aot_id, graph.index) for graph in log.graphs] == [
        ("forward", "0_forward", 0),
        ("backward", "0_backward", 1),
    ]
    assert len(compiled.named("aot_joint_graph")) == 1
    assert [metrics["compile_id"] for metrics in compiled.metrics] == ["0/0", "0/0"]


@pytest.mark.parametrize("folder", ["model__0_forward_1.0", "model__0_backward_3.1"])
def test_a_graph_is_that_of_its_debug_folder(folder: str) -> None:
    path, log = fixture("c11_mlp_train")
    graph = log.graph_of_folder(folder)
    assert graph is not None
    (run,) = path.parent.parent.glob(f"run_*/torchinductor/{folder}")
    assert (graph.output_code or "").strip() == (run / "output_code.py").read_text().strip()
    logged = fx_graph.parse(graph.post_grad or "", "log")
    written = fx_graph.parse((run / "fx_graph_transformed.py").read_text(), "file")
    assert [node.name for node in logged.nodes] == [node.name for node in written.nodes]
    assert all(node.stride is not None for node in logged.nodes if node.shape is not None)
    assert (graph.runnable or "").count("class Repro") == 1


def test_provenance_of_a_backward_is_empty_but_its_stacks_are_there() -> None:
    _, log = fixture("c11_mlp_train")
    backward = log.graphs[1]
    assert provenance.parse(backward.provenance or "", "p").kernel_to_post == {}
    stacks = provenance.parse(backward.kernel_stacks or "", "s").kernel_stacks
    assert "line 12, in forward" in stacks["extern_kernels.mm:1"][0]


def test_a_cache_hit_keeps_code_but_names_no_folder() -> None:
    _, log = fixture("cache_warm")
    (compiled,) = log.compiles
    assert compiled.cache is CacheEvent.HIT
    (graph,) = log.graphs
    assert graph.kind == "inference"
    assert (graph.output_filename or "").endswith(".py")
    assert graph.text("before_post_grad_graph") is None


def test_payloads_are_cut_out_without_their_tab() -> None:
    log = parse(artifact("before_joint_graph", "class A:\n\tindented\n\nend"), "t.log")
    (record,) = log.compiles[0].records
    assert record.text == "class A:\n\tindented\n\nend"
    assert (record.location, record.kind, record.pid) == (Location("t.log", 1), "artifact", 7)


def test_post_grad_graphs_of_2_9_have_another_name() -> None:
    log = parse(
        artifact("fx_graph_runnable", "# torch version: 2.9.1+cu128") + artifact("after_post_grad_graph", "x"), "t"
    )
    assert [graph.post_grad for graph in log.graphs] == ["x"]
    assert log.torch_version == "2.9.1+cu128"


def test_a_graph_begins_where_the_sequence_starts_over() -> None:
    first = artifact("fx_graph_runnable") + artifact("inductor_post_grad_graph", "a") + code("3_forward")
    second = artifact("fx_graph_runnable") + artifact("inductor_post_grad_graph", "b") + code("3_backward")
    log = parse(first + second, "t.log")
    assert [(graph.aot_id, graph.post_grad) for graph in log.graphs] == [("3_forward", "a"), ("3_backward", "b")]
    assert log.graph_of_folder("model__3_backward_3.9").index == 1  # type: ignore[union-attr]
    assert log.graph_of_folder("model__4_backward_3.9") is None
    assert log.graph_of_folder("model___0.0") is None, "two graphs, and the folder names neither"


def test_a_retried_graph_is_its_last_attempt() -> None:
    log = parse(code("0_inference") + artifact("fx_graph_runnable") + code("0_inference"), "t.log")
    assert log.graph_of_folder("model__0_inference_0.1").index == 1  # type: ignore[union-attr]


def test_compiles_are_told_apart_by_frame_attempt_and_rank() -> None:
    one = artifact(
        "dynamo_graph_break_reason", "break", '"frame_id": 2, "frame_compile_id": 1, "attempt": 1, "rank": 3'
    )
    two = artifact("recompile_reasons", '["a == 1", "b"]', '"frame_id": 2, "frame_compile_id": 2, "attempt": 0')
    three = artifact("recompile_reasons", "0/0: not json", '"frame_id": 2, "frame_compile_id": 3, "attempt": 0')
    first, second, third = parse(one + two + three, "t.log").compiles
    assert (first.key, str(first.key), first.graph_breaks) == (CompileKey(2, 1, 1, 3), "2/1_1", ("break",))
    assert second.recompile_reasons == ("a == 1", "b")
    assert third.recompile_reasons == ("0/0: not json",)


def test_cache_events_of_the_timeline_do_not_count() -> None:
    event = header('{"chromium_event": {}, "frame_id": 0, "frame_compile_id": 0, "attempt": 0, "has_payload": "0"}')
    for name, state in (("hit", CacheEvent.UNKNOWN), ("disabled", CacheEvent.DISABLED)):
        text = artifact("before_joint_graph") + event + f'\t{{\n\t"name": "fx_graph_cache_{name}"\n\t}}\n'
        assert parse(text, "t.log").compiles[0].cache is state
    bypass = artifact("fx_graph_cache_bypass", "{}")
    assert parse(bypass, "t.log").compiles[0].cache is CacheEvent.BYPASS


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ("cut off in the middle\n", 1, "expected a record header"),
        (header('{"artifact": {"name": "x"'), 79, "expected the JSON of a record: Expecting ',' delimiter"),
        (header('{"artifact": ' + "[" * 100_000), 54, "deep nesting"),
    ],
)
def test_a_damaged_line_costs_its_record(line: str, column: int, message: str) -> None:
    log = parse(
        artifact("before_joint_graph", "a") + line + "\tits payload\n" + artifact("after_joint_graph", "b"), "t.log"
    )
    (problem,) = log.artifact.problems
    assert problem.location == Location("t.log", 3, column)
    assert message in problem.message
    assert [record.text for record in log.compiles[0].records] == ["a", "b"]
    assert [record.location.line for record in log.compiles[0].records] == [1, 5]


def test_a_foreign_file_is_one_stretch_of_damage() -> None:
    log = parse("op0: SchedulerNode(ComputedBuffer)\nop0.writes = []\n", "t.log")
    (problem,) = log.artifact.problems
    assert (problem.location.line, problem.lines) == (1, 2)


def test_line_ends_of_windows_and_bytes_that_are_no_text() -> None:
    text = artifact("before_joint_graph", "a\nb").replace("\n", "\r\n").encode() + b"\tc\xff\r\n"
    (record,) = parse(text, "t.log").compiles[0].records
    assert record.text.rstrip("\r") == "a\nb\nc\ufffd"


def test_an_empty_log_is_empty() -> None:
    assert parse("\n\n", "t.log").artifact.state is ArtifactState.EMPTY


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])), min_size=1))
def test_payloads_come_back(lines: list[str]) -> None:
    payload = "\n".join(lines)
    (record,) = (
        parse(artifact("before_joint_graph", payload) + artifact("x"), "t.log").compiles[0].named("before_joint_graph")
    )
    assert record.text == payload


@given(st.binary())
def test_any_bytes_are_answered(data: bytes) -> None:
    assert parse(data, "t.log").graphs == ()
