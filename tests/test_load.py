"""Runs as a whole: what belongs together, what stands in for what, and why something is missing."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

import cli
from analyzer.artifacts import ir_dump, output_code
from analyzer.artifacts.trace_log import CacheEvent
from analyzer.errors import ArtifactError
from analyzer.load import load_run
from analyzer.load.launch import Process, newest_launch
from analyzer.load.slots import SLOTS, Circumstances, missing_cause, overwritten
from analyzer.model import ArtifactState, CacheState, CompiledGraph, FxGraph

RUNS = Path(__file__).parent.parent / "fixtures/runs"
CAPTURED = Path(__file__).parent.parent / "fixtures/captured/sin_cos_inlining"
TRAINED = RUNS / "cpu-2.13/c11_mlp_train"
RUN = "run_2026_11_30_01_36_30_954177-pid_20658"
LOG = "dedicated_log_torch_trace_w8randwx.log"
FORWARD, BACKWARD = "model__0_forward_1.0", "model__0_backward_3.1"


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TRAINED, tmp_path / "run"))


def folder(run: Path, name: str) -> Path:
    return run / "torch_compile_debug" / RUN / "torchinductor" / name


def states(graph: CompiledGraph) -> dict[str, str]:
    return {artifact.file: str(artifact.state) for artifact in graph.artifacts}


def causes(graph: CompiledGraph) -> dict[str, str | None]:
    return {artifact.file: artifact.cause for artifact in graph.artifacts if artifact.state == ArtifactState.MISSING}


# ------------------------------------------------------------------------------------- several processes of one launch


def launch(run: Path, ranks: dict[int, int | None], started: str = "2026_12_01_00_00_00_00000") -> None:
    """Run folders and trace logs as `torchrun` leaves them: one of each per process, in one debug folder."""
    debug = run / "torch_compile_debug"
    log = (TRAINED / "torch_compile_debug/tlparse" / LOG).read_text()
    for number, (pid, rank) in enumerate(ranks.items()):
        shutil.copytree(TRAINED / "torch_compile_debug" / RUN, debug / f"run_{started}{number}-pid_{pid}")
        text = log.replace(" 20658 ", f" {pid} ")
        if rank is not None:
            text = text.replace('"frame_id": 0,', f'"rank": {rank}, "frame_id": 0,')
        (debug / "tlparse").mkdir(parents=True, exist_ok=True)
        (debug / "tlparse" / f"dedicated_log_torch_trace_rank_{rank}_{pid}.log").write_text(text)


def test_ranks_of_one_launch_are_one_run(tmp_path: Path) -> None:
    launch(tmp_path, {71: 1, 70: 0})
    run = load_run(tmp_path)
    assert [graph.label for graph in run.graphs] == [
        f"{name} ({rank})" for rank in ("rank 0", "rank 1") for name in (FORWARD, BACKWARD)
    ]
    assert [graph.name for graph in run.graphs] == [FORWARD, BACKWARD] * 2
    assert [
        f"pid_{graph.trace.records['inductor_output_code'].pid}/" in graph.path for graph in run.graphs if graph.trace
    ] == [True] * 4
    assert run.notes == ("graphs of 2 processes of one launch: rank 0, rank 1",)


def test_ranks_of_an_earlier_launch_are_not_mixed_in(tmp_path: Path) -> None:
    launch(tmp_path, {60: 0, 61: 1}, "2026_11_01_00_00_00_00000")
    launch(tmp_path, {70: 0, 71: 1})
    run = load_run(tmp_path)
    assert {graph.path.split("-pid_")[1][:2] for graph in run.graphs} == {"70", "71"}
    assert run.notes[0].startswith("2 older runs beside this one left out: run_2026_11_01")


def test_processes_without_ranks_are_runs_of_their_own(tmp_path: Path) -> None:
    launch(tmp_path, {70: None, 71: None})
    run = load_run(tmp_path)
    assert [graph.label for graph in run.graphs] == [FORWARD, BACKWARD]
    assert all("pid_71" in graph.path for graph in run.graphs)
    assert run.notes == ("1 older run beside this one left out: run_2026_12_01_00_00_00_000000-pid_70",)


def process(pid: int, started: str, *span: str) -> Process:
    """A process that began to compile at a second of one minute, and whose log goes from there to another."""
    folder = PurePosixPath(f"run_2026_12_01_10_00_{started}_000000-pid_{pid}")
    begin, end = (f"1201 10:00:{second}.000000" for second in span) if span else (None, None)
    return Process(folder, pid, None, (begin, end) if begin and end else None)


@pytest.mark.parametrize(
    ("processes", "newest"),
    [
        ([process(1, "01", "01", "05"), process(2, "10", "10", "20")], [2]),
        ([process(1, "01", "01", "30"), process(2, "10", "10", "20")], [1, 2]),
        ([process(1, "01"), process(2, "10")], [2]),
        # a parent and two workers, one after the other, behind an earlier run
        (
            [
                process(7, "01", "01", "02"),
                process(1, "03", "03", "50"),
                process(2, "10", "10", "20"),
                process(3, "30", "30", "40"),
            ],
            [1, 2, 3],
        ),
        ([], []),
    ],
)
def test_processes_that_ran_at_the_same_time_are_one_launch(processes: list[Process], newest: list[int]) -> None:
    assert [one.pid for one in newest_launch(processes)] == newest


def test_a_compile_worker_and_its_parent_are_one_run() -> None:
    """The parent's folder has no graph, so the worker's graph needs no name of its process."""
    run = load_run(RUNS.parent / "doctor/compile_worker")
    assert [graph.label for graph in run.graphs] == ["model___0.0"]
    assert {log.pid for log in run.traces} == {3806, 3843}
    assert (run.older, run.cache_state) == ((), CacheState.COLD)


def test_all_processes_that_a_capture_started_belong_to_it(tmp_path: Path) -> None:
    captured = Path(shutil.copytree(CAPTURED, tmp_path / "run"))
    debug = captured / "torch_compile_debug"
    first = next(debug.iterdir())
    shutil.copytree(first, debug / first.name.replace("pid_25974", "pid_25975"))
    run = load_run(captured)
    assert [graph.label for graph in run.graphs] == [f"model__0_inference_0.0 (process {n})" for n in (1, 2)]
    assert run.captured
    one = load_run(first)
    assert [graph.label for graph in one.graphs] == ["model__0_inference_0.0"]


def test_processes_are_told_apart_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    launch(tmp_path, {70: 0, 71: 1})
    assert cli.main(["report", str(tmp_path), "--json", "--graph", f"{FORWARD} (rank 1)"]) == 0
    graphs = json.loads(capsys.readouterr().out)["graphs"]
    assert [(graph["name"], graph["process"]) for graph in graphs] == [(FORWARD, "rank 1")]
    assert cli.main(["report", str(tmp_path), "--json", "--graph", FORWARD]) == 0
    assert [graph["process"] for graph in json.loads(capsys.readouterr().out)["graphs"]] == ["rank 0", "rank 1"]


# ------------------------------------------------------------------------------------------- the trace log stands in


def test_what_a_folder_lacks_is_taken_from_the_trace_log(trained: Path) -> None:
    whole = load_run(trained).graphs[0]
    for file in folder(trained, FORWARD).iterdir():
        if not file.name.startswith("ir_"):
            file.unlink()
    graph = load_run(trained).graphs[0]
    assert set(states(graph).values()) == {"parsed"}
    assert graph.provenance is not None
    assert whole.provenance is not None
    assert graph.provenance.kernel_to_post == whole.provenance.kernel_to_post
    assert graph.code is not None
    assert whole.code is not None
    assert [call.callee for call in graph.code.calls()] == [call.callee for call in whole.code.calls()]
    assert graph.fx is not None
    assert whole.fx is not None
    assert [node.name for node in graph.fx.nodes] == [node.name for node in whole.fx.nodes]
    assert graph.fx.nodes[0].device == "cpu", "the log prints devices, the file does not"


def test_a_problem_in_a_record_lies_at_its_line_of_the_log(trained: Path) -> None:
    log = trained / "torch_compile_debug/tlparse" / LOG
    lines = log.read_text().split("\n")
    header = next(n for n, line in enumerate(lines) if "inductor_post_grad_graph" in line)
    at = next(n for n in range(header, len(lines)) if "torch.ops.aten.relu" in lines[n])
    column = lines[at].index("torch.ops.aten.relu")
    lines[at] = lines[at][:column] + "torch.ops.aten.relu.default(("
    log.write_text("\n".join(lines))
    (folder(trained, FORWARD) / "fx_graph_transformed.py").unlink()
    graph = load_run(trained).graphs[0]
    (problem,) = next(artifact for artifact in graph.artifacts if artifact.file == "fx_graph_transformed.py").problems
    assert (problem.location.file, problem.location.line) == (str(log), at + 1)
    assert lines[at][problem.location.column - 1 :].startswith(("(", "torch"))


def test_kernels_of_a_lazy_backward_have_source_lines_from_the_log(trained: Path) -> None:
    backward = load_run(trained).graphs[1]
    assert backward.provenance is not None
    assert backward.provenance.kernel_to_post == {}
    (text,) = backward.provenance.kernel_stacks["extern_kernels.mm:1"]
    assert 'File "/home/user/zoo/c11_mlp_train.py", line 12, in forward' in text


def test_a_folder_of_trace_logs_alone(trained: Path) -> None:
    shutil.rmtree(trained / "torch_compile_debug" / RUN)
    run = load_run(trained)
    assert [(graph.label, graph.kind) for graph in run.graphs] == [
        ("0_forward.0", "forward"),
        ("0_backward.1", "backward"),
    ]
    assert all(graph.code is not None and graph.fx is not None for graph in run.graphs)
    assert causes(run.graphs[0])["ir_pre_fusion.txt"] == (
        "logs hold no IR dumps; run with TORCH_COMPILE_DEBUG=1, or use `inductor-audit capture`"
    )


# ------------------------------------------------------------------------------------------------------- warm caches


def test_a_warm_cache_is_said_and_its_kernels_are_shown() -> None:
    run = load_run(RUNS / "cpu-2.13/cache_warm")
    (graph,) = run.graphs
    assert run.cache_state == CacheState.WARM
    assert run.notes[0].startswith("1 graph came from a warm cache: not compiled here, so not dumped")
    assert graph.code is not None
    assert causes(graph) == dict.fromkeys(
        ("ir_pre_fusion.txt", "ir_post_fusion.txt"),
        "the graph came from a warm cache: nothing was compiled, so nothing was dumped",
    )


def test_cached_graphs_stand_beside_compiled_ones(tmp_path: Path) -> None:
    run = Path(shutil.copytree(RUNS / "cpu-2.13/cache_warm", tmp_path / "run"))
    debug = run / "torch_compile_debug"
    source = next((RUNS / "cpu-2.13/c01_pointwise_chain").glob("**/model__0_inference_0.0"))
    shutil.copytree(source, debug / "run_2026_11_30_02_33_33_000000-pid_4339/torchinductor/model__1_inference_1.0")
    loaded = load_run(run)
    assert [graph.label for graph in loaded.graphs] == ["model__1_inference_1.0", "0_inference.0"]
    assert loaded.cache_state == CacheState.MIXED


def test_a_run_folder_without_graphs_is_no_empty_run(tmp_path: Path) -> None:
    log = tmp_path / "torch_compile_debug/run_2026_11_30_02_33_33_000000-pid_4339/torchdynamo/debug.log"
    log.parent.mkdir(parents=True)
    log.write_text("")
    run = load_run(tmp_path)
    assert run.graphs == ()
    assert run.notes[0].startswith("no graph folder: nothing was compiled here, or every graph came from a warm cache")


# -------------------------------------------------------------------------------------------------- missing and damaged


def slot(field: str) -> int:
    return next(number for number, one in enumerate(SLOTS) if one.field == field)


ALL = frozenset(one.file for one in SLOTS)
DUMPED = frozenset({"fx_graph_readable.py", "fx_graph_transformed.py", "fx_graph_runnable.py"})


@pytest.mark.parametrize(
    ("field", "seen", "cause"),
    [
        ("provenance", Circumstances(ALL, version="2.5.1"), "torch 2.5.1 does not write it; torch 2.7 and later do"),
        (
            "provenance",
            Circumstances(ALL, version="2.13.0", settings={"INDUCTOR_PROVENANCE": "0"}),
            "provenance tracking was off; INDUCTOR_PROVENANCE=1 switches it on",
        ),
        (
            "provenance",
            Circumstances(ALL, "backward", "2.13.0"),
            "torch writes none for a backward graph that is compiled lazily, at the call of backward()",
        ),
        ("provenance", Circumstances(DUMPED), "the compile failed before it was written"),
        ("pre", Circumstances(DUMPED), "the compile failed before it was written: in lowering, scheduling or fusion"),
        ("pre", Circumstances(ALL), "not among the files, though Inductor writes it before the output code"),
        ("pre", Circumstances(frozenset()), "not among the files"),
        (
            "post",
            Circumstances(DUMPED, failure="LoweringException: no"),
            "the compile failed before it was written: LoweringException: no",
        ),
        (
            "fx",
            Circumstances(frozenset({"fx_graph_runnable.py", "fx_graph_readable.py"})),
            "the compile failed in a pass on the FX graph, before it was written",
        ),
        (
            "fx",
            Circumstances(frozenset(), cache=CacheEvent.HIT),
            "the graph came from a warm cache: nothing was compiled, so nothing was dumped",
        ),
        ("code", Circumstances(ALL, "inference"), "the compile failed in code generation"),
        (
            "code",
            Circumstances(ALL, "unknown", "2.5.1"),
            "torch 2.5.1 keeps no copy of what it compiles ahead of time; torch 2.9 and later do",
        ),
    ],
)
def test_a_missing_artifact_has_a_cause(field: str, seen: Circumstances, cause: str) -> None:
    assert missing_cause(SLOTS[slot(field)], seen) == cause


def test_a_damaged_file_costs_only_itself(trained: Path) -> None:
    (folder(trained, FORWARD) / "ir_post_fusion.txt").write_bytes(b"\x00\xff\x00 junk")
    (folder(trained, FORWARD) / "fx_graph_runnable.py").write_bytes(b"")
    forward, backward = load_run(trained).graphs
    assert states(forward) == {
        **dict.fromkeys(states(backward), "parsed"),
        "ir_post_fusion.txt": "unsupported",
        "fx_graph_runnable.py": "empty",
    }
    (problem,) = next(artifact for artifact in forward.artifacts if artifact.file == "ir_post_fusion.txt").problems
    assert str(problem.location) == f"{folder(trained, FORWARD)}/ir_post_fusion.txt:1:1"
    assert problem.message == "expected a node's header, NAME: CLASS(CLASS)"


def test_a_file_that_is_no_file_costs_only_itself(trained: Path) -> None:
    path = folder(trained, FORWARD) / "output_code.py"
    path.unlink()
    os.mkfifo(path)
    (trained / "torch_compile_debug/tlparse" / LOG).unlink()
    forward = load_run(trained).graphs[0]
    assert states(forward)["output_code.py"] == "missing"
    assert causes(forward) == {"output_code.py": "expected a plain file"}


def test_a_broken_manifest_is_an_error_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    captured = Path(shutil.copytree(CAPTURED, tmp_path / "run"))
    manifest = captured / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"torch": ', '"torch" '))
    with pytest.raises(ArtifactError) as caught:
        load_run(captured)
    assert (caught.value.location.file, caught.value.location.line) == (str(manifest), 3)
    assert cli.main(["report", str(captured)]) == 2
    assert "manifest.json:3:" in "".join(capsys.readouterr().err.split())


# --------------------------------------------------------------------------------------------------- overwritten dumps


def test_dumps_that_a_branch_overwrote() -> None:
    (graph,) = load_run(RUNS / "cpu-2.13/c29_cond").graphs
    assert graph.overwritten == ("false_graph_0",)


NODE = """\
{name}: NopKernelSchedulerNode(ComputedBuffer)
{name}.writes = [MemoryDep('buf0', c0, {{c0: 4}})]
{name}.unmet_dependencies = []
{name}.met_dependencies = []
{name}.outputs = [
    buf0: ComputedBuffer
    buf0.layout = FixedLayout('cpu', torch.float32, size=[4], stride=[1])
    buf0.users = []
]


"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("op0", ()),
        ("buf3", ()),
        ("op0_op1", ()),
        ("buf0_buf12", ()),
        ("true_graph_0_op0", ("true_graph_0",)),
        ("while_loop_body_graph_0_0_op5", ("while_loop_body_graph_0_0",)),
        ("repeated_subgraph0_buf7", ("repeated_subgraph0",)),
    ],
)
def test_nodes_of_subgraphs_bear_their_name(name: str, expected: tuple[str, ...]) -> None:
    dump = ir_dump.parse(NODE.format(name=name), "ir_post_fusion.txt")
    assert len(dump.nodes) == 1
    assert overwritten(CompiledGraph("g", "inference", "g", post=dump)) == expected


def test_a_branch_without_nodes_leaves_empty_dumps() -> None:
    """Then only the calls in the output code tell that there was something to dump."""
    (graph,) = load_run(RUNS / "cpu-2.13/c29_cond").graphs
    empty = ir_dump.parse("", "ir_post_fusion.txt")
    assert overwritten(replace(graph, post=empty)) == ("true_graph_0", "false_graph_0")
    assert graph.code is not None
    kept = tuple(call for call in graph.code.calls() if call.scope != "false_graph_0")
    assert overwritten(replace(graph, post=empty, code=replace(graph.code, steps=kept))) == ("false_graph_0",)
    no_calls = output_code.parse("", "output_code.py")
    assert overwritten(CompiledGraph("g", "inference", "g", post=empty, code=no_calls)) == ()
    fx = FxGraph(empty.artifact, subgraphs={})
    assert overwritten(replace(graph, post=empty, fx=fx)) == ()


def test_a_damaged_sidecar_costs_only_itself(tmp_path: Path) -> None:
    captured = Path(shutil.copytree(CAPTURED, tmp_path / "run"))
    (path,) = captured.glob("**/inductor_audit.json")
    path.write_text(path.read_text()[:100])
    (graph,) = load_run(captured).graphs
    assert graph.sidecar is None
    (artifact,) = (one for one in graph.artifacts if one.file == "inductor_audit.json")
    assert artifact.state == ArtifactState.UNSUPPORTED
    assert artifact.problems[0].location.line == 1


# ----------------------------------------------------------------------------------------------------------- fixtures


def test_there_is_a_real_run_of_every_torch_and_device() -> None:
    """Read in full: no line is lost, nothing is unknown; only what that torch does not write is missing."""
    versions: dict[str, set[str]] = {}
    for path in sorted(RUNS.glob("*/*")):
        run = load_run(path)
        assert run.graphs, path
        if run.torch_version is not None:
            version = ".".join(run.torch_version.split(".")[:2])
            versions.setdefault(path.parent.name.partition("-")[0], set()).add(version)
        for artifact in (artifact for graph in run.graphs for artifact in graph.artifacts):
            assert artifact.unparsed_lines == 0, (path, artifact)
            assert artifact.state in ("parsed", "empty") or artifact.cause, (path, artifact)
    assert versions["cpu"] >= {f"2.{minor}" for minor in (5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)}
    assert versions["cuda"] >= {"2.9", "2.14"}


def test_every_run_has_its_program() -> None:
    source = "".join((RUNS.parent / "programs" / name).read_text() for name in ("runs.py", "kinds.py"))
    folders = {path.name for path in RUNS.glob("cpu-*/*")} - {"cache_warm"}
    assert {name for name in folders if f"\ndef {name}():" not in source} == set()
