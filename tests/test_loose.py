"""Single files: every kind is told by its looks, and what is none of them is refused with a place and a next step."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

import cli
from analyzer.errors import ArtifactError
from analyzer.load import load_run
from analyzer.model import CompiledGraph

FIXTURES = Path(__file__).parent.parent / "fixtures"
RUNS = FIXTURES / "runs"
TRAINED = next((RUNS / "cpu-2.13/c11_mlp_train").glob("**/model__0_forward_1.0"))
TRACE = next((RUNS / "cpu-2.13/c11_mlp_train").glob("**/*.log"))
SIDECAR = next((FIXTURES / "captured").glob("sin_cos_inlining/**/inductor_audit.json"))
AOT = next((RUNS / "cpu-2.13/c46_aoti").glob("**/output_code.cpp"))
CONSOLE = FIXTURES / "logs/softmax_train-cpu-2.13.log"
FIELDS = ("fx", "readable", "pre", "post", "code", "runnable", "provenance", "sidecar")


def filled(graph: CompiledGraph) -> list[str]:
    return [field for field in FIELDS if getattr(graph, field) is not None]


def only(path: Path) -> CompiledGraph:
    (graph,) = load_run(path).graphs
    return graph


# --------------------------------------------------------------------------------------------------- artifacts by looks


@pytest.mark.parametrize(
    ("file", "field"),
    [
        (TRAINED / "fx_graph_transformed.py", "fx"),
        (TRAINED / "fx_graph_readable.py", "fx"),
        (TRAINED / "fx_graph_runnable.py", "runnable"),
        (TRAINED / "ir_pre_fusion.txt", "pre"),
        (TRAINED / "ir_post_fusion.txt", "post"),
        (TRAINED / "output_code.py", "code"),
        (TRAINED / "inductor_provenance_tracking_node_mappings.json", "provenance"),
        (SIDECAR, "sidecar"),
        (AOT, "code"),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else value,
)
def test_every_kind_of_file_by_itself(file: Path, field: str, tmp_path: Path) -> None:
    graph = only(file)
    assert filled(graph) == [field]
    assert (graph.name, graph.path) == (file.stem, str(file))
    assert [(artifact.file, artifact.state) for artifact in graph.artifacts] == [(file.name, "parsed")]
    if field != "sidecar":
        renamed = Path(shutil.copy(file, tmp_path / "attachment"))
        expected = "pre" if field == "post" and b"FusedSchedulerNode" not in file.read_bytes() else field
        assert filled(only(renamed)) == [expected]


def test_a_paste_with_both_dumps(tmp_path: Path) -> None:
    paste = tmp_path / "paste.txt"
    pre, post = ((TRAINED / f"ir_{when}_fusion.txt").read_text() for when in ("pre", "post"))
    paste.write_text(f"BEFORE FUSION\n{pre}AFTER FUSION\n{post}")
    graph = only(paste)
    assert filled(graph) == ["pre", "post"]
    assert [(artifact.state, artifact.unparsed_lines) for artifact in graph.artifacts] == [("parsed", 0)] * 2
    assert graph.post is not None
    first = graph.post.nodes[0].location
    assert first is not None
    assert paste.read_text().split("\n")[first.line - 1].startswith(f"{graph.post.nodes[0].name}: ")


def test_the_side_record_of_kernel_stacks(tmp_path: Path) -> None:
    path = tmp_path / "inductor_provenance_tracking_kernel_stack_traces.json"
    path.write_text('{"cpp_fused_cos_0:1": ["  File \\"demo.py\\", line 3, in f"]}')
    graph = only(path)
    assert graph.provenance is not None
    assert list(graph.provenance.kernel_stacks) == ["cpp_fused_cos_0:1"]


# ----------------------------------------------------------------------------------------------------------------- logs


def test_a_trace_log(capsys: pytest.CaptureFixture[str]) -> None:
    run = load_run(TRACE)
    assert [(graph.name, graph.kind) for graph in run.graphs] == [
        ("0_forward.0", "forward"),
        ("0_backward.1", "backward"),
    ]
    assert [filled(graph) for graph in run.graphs] == [["fx", "readable", "code", "runnable", "provenance"]] * 2
    assert run.torch_version == "2.13.0+cpu"
    assert cli.main(["report", str(TRACE), "--json"]) == 0
    kernels = json.loads(capsys.readouterr().out)["graphs"][0]["kernels"]
    assert [kernel["name"] for kernel in kernels].count("extern_kernels.addmm") == 1


def test_a_trace_log_without_a_graph(tmp_path: Path) -> None:
    log = tmp_path / "dedicated_log_torch_trace_x.log"
    lines = TRACE.read_text().split("\n")
    end = next(number for number, line in enumerate(lines) if "fx_graph_runnable" in line)
    log.write_text("\n".join(lines[:end]))
    with pytest.raises(ArtifactError) as caught:
        load_run(log)
    assert str(caught.value) == f"{log}:1:1: expected the records of a graph: this trace log has none"
    assert caught.value.hint == "nothing was compiled by Inductor in this process, or the log was cut off"


def test_a_console_log() -> None:
    graphs = load_run(CONSOLE).graphs
    assert [(graph.label, filled(graph)) for graph in graphs] == [
        ("graph_0", ["fx", "pre", "post", "code"]),
        ("graph_1", ["fx", "pre", "post", "code"]),
    ]
    assert {artifact.state for graph in graphs for artifact in graph.artifacts} == {"parsed"}


def test_a_console_log_of_two_ranks(tmp_path: Path) -> None:
    """torchrun prints the lines of its workers as they come."""
    lines = (FIXTURES / "logs/sin_cos-cpu-2.13.log").read_text().splitlines()
    log = tmp_path / "console.log"
    log.write_text("".join(f"[rank{rank}]:{line}\n" for line in lines for rank in (0, 1)))
    graphs = load_run(log).graphs
    assert [graph.label for graph in graphs] == ["graph_0 (rank 0)", "graph_1 (rank 1)"]
    assert graphs[0].pre is not None
    assert graphs[1].pre is not None
    assert [n.name for n in graphs[0].pre.nodes] == [n.name for n in graphs[1].pre.nodes] != []


def test_a_console_log_says_what_it_lacks(tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    kept = [line for line in CONSOLE.read_text().split("\n") if "__ir_" not in line]
    log.write_text("\n".join(kept))
    run = load_run(log)
    causes = {artifact.file: artifact.cause for artifact in run.graphs[0].artifacts if artifact.cause}
    assert causes == {
        "ir_pre_fusion": "not in the log; TORCH_LOGS=ir_pre_fusion prints it",
        "ir_post_fusion": "not in the log; TORCH_LOGS=ir_post_fusion prints it",
    }
    assert run.notes == (
        "the log has no IR dumps: either TORCH_LOGS lacks ir_pre_fusion,ir_post_fusion, or a cache was warm",
    )


def test_a_bad_node_in_a_console_log_has_its_place_in_the_log(tmp_path: Path) -> None:
    lines = CONSOLE.read_text().split("\n")
    at = next(n for n, line in enumerate(lines) if "[__ir_pre_fusion] op0.writes = " in line)
    column = lines[at].index("op0.writes")
    lines[at] = lines[at][:column] + "op0.writes = [MemoryDep('buf0', c0"
    log = tmp_path / "console.log"
    log.write_text("\n".join(lines))
    artifact = next(one for one in load_run(log).graphs[0].artifacts if one.file == "ir_pre_fusion")
    assert artifact.state == "partial"
    place = artifact.problems[0].location
    assert place.file == str(log)
    assert place.line in (at + 1, at + 2), "in the cut line, or where the next one goes on wrongly"
    assert place.column > column


# ---------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("data", "where", "message", "excerpt"),
    [
        (b"", "1:1", "expected an IR dump, code, graph or log, found an empty file", None),
        (b" \n\n\t\n", "1:1", "expected an IR dump, code, graph or log, found an empty file", None),
        (
            b"\n\n  hello\n",
            "3:1",
            "expected an IR dump, code, graph or log, found no artifact of TorchInductor",
            "hello",
        ),
        (b"\x7fELF\x02\0\0\0", "1:1", "expected an IR dump, code, graph or log, found binary data", None),
        (b"<html><body>404</body>", "1:1", "expected an IR dump, code, graph or log, found no artifact", "<html>"),
        (b"\x1b[31mred\x1b[0m [bold]x", "1:1", "expected an IR dump, code, graph or log, found no artifact", "[bold]x"),
    ],
)
def test_what_is_no_artifact(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes, where: str, message: str, excerpt: str | None
) -> None:
    path = tmp_path / "x"
    path.write_bytes(data)
    assert cli.main(["report", str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "\x1b[31m" not in printed.err
    err = re.sub(r"\s+", " ", printed.err)
    assert f":{where}: {message}"[:60].replace(" ", "") in err.replace(" ", "")
    assert "next: give a debug folder, an archive of one, an IR dump, output code, an FX graph, or a log" in err
    assert excerpt is None or excerpt in err


def test_the_pretty_ir_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log.txt"
    path.write_text("PRE-FUSION PRETTY IR\nkernel op3(\n    buf1: f32[4]\n) -> buf3: f32[4]:\n    for p0 in [0, 4):\n")
    (artifact,) = only(path).artifacts
    assert (artifact.state, artifact.cause) == ("unsupported", "the pretty IR form, which is not supported")
    assert cli.main(["report", str(path)]) == 2, "nothing to report is a failure, not an empty report"
    assert "pretty IR" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("name", "old", "new", "line", "column", "message"),
    [
        ("ir_pre_fusion.txt", "'buf0', mode=None)]", "'buf0', mode=None}]", 2, 45, "expected ')' or ',', found '}'"),
        ("fx_graph_transformed.py", "torch.ops.aten", "torch.ops..aten", 4, 44, "not valid Python: invalid syntax"),
        (
            "output_code.py",
            "def call(self, args):",
            "def call(self args):",
            74,
            19,
            "expected Python code (invalid syntax)",
        ),
        ("inductor_provenance_tracking_node_mappings.json", '"preToPost": {', '"preToPost" {', 1, 14, "expected JSON"),
    ],
)
def test_bad_places_of_each_artifact_reach_the_report(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    old: str,
    new: str,
    line: int,
    column: int,
    message: str,
) -> None:
    text = (TRAINED / name).read_text()
    assert old in text
    path = tmp_path / name
    path.write_text(text.replace(old, new, 1))
    assert cli.main(["report", str(path), "--json"]) in (0, 2)
    (artifact,) = json.loads(capsys.readouterr().out)["graphs"][0]["artifacts"]
    assert artifact["state"] == "partial"
    assert artifact["unparsed_lines"] > 0
    error = artifact["errors"][0]
    assert (error["line"], error["column"]) == (line, column)
    assert error["message"].startswith(message)
