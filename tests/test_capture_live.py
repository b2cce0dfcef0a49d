"""Captures of real compiles. Most skip the C++ compiler (`without_cxx.py`): it comes after the artifacts."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from analyzer.artifacts import rare, sidecar
from analyzer.artifacts.sidecar import Sidecar
from analyzer.capture import CaptureRequest, CaptureResult, capture, script_command
from analyzer.errors import UsageError

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch"),
]

HERE = Path(__file__).parent
PROGRAMS = HERE.parent / "fixtures/programs"
FAST = str(HERE / "without_cxx.py")
INDUCTOR = "torch._inductor.config."


def fast(program: str, *arguments: str) -> tuple[str, ...]:
    return script_command(FAST, (str(PROGRAMS / program), *arguments))


def run(out: Path, command: tuple[str, ...], **options) -> CaptureResult:
    return capture(CaptureRequest(command, out=out, timeout=300, **options))


def sidecars(result: CaptureResult) -> list[Sidecar]:
    paths = [result.folder / entry.folder / rare.SIDECAR for entry in result.manifest.graphs]
    return [sidecar.parse(path.read_text(encoding="utf-8"), str(path)) for path in paths]


def only(result: CaptureResult) -> Sidecar:
    (found,) = sidecars(result)
    return found


def owners(found: Sidecar) -> list[tuple[str | None, str]]:
    return [(buffer.origin_node, buffer.realized_by.rule) for buffer in found.buffers()]


# ------------------------------------------------------------------------------------------------ the founding example


def test_thresholds_that_the_script_sets_itself(tmp_path, capfd):
    """The whole way, C++ compiler included: sum(sin(cos(0))) over 1000 elements."""
    result = run(tmp_path / "run", script_command(str(PROGRAMS / "sin_cos_thresholds.py"), ("--lr", "1")))
    out = capfd.readouterr().out
    assert out.startswith("sum 841.47")
    assert out.endswith("--lr 1\n")
    assert (result.exit_code, result.findings) == (0, ())
    found = only(result)
    assert owners(found) == [("sin", "output")]
    assert [buffer.origins for buffer in found.buffers()] == [("cos", "sin")]
    assert found.context.settings[INDUCTOR + "realize_opcount_threshold"] == "0"


def test_thresholds_by_setting(tmp_path):
    settings = (("realize_reads_threshold", "0"), ("realize_opcount_threshold", "0"), ("cse", "False"))
    result = run(tmp_path / "run", fast("sin_cos.py"), settings=settings)
    found = only(result)
    assert len(found.root.scheduler_nodes) == 1
    assert found.context.settings[INDUCTOR + "realize_reads_threshold"] == "0"
    assert found.context.settings["torch._functorch.config.cse"] == "False"
    assert result.manifest.settings[INDUCTOR + "realize_reads_threshold"] == "0"
    assert found.root.lowerings[0].hinted is True
    runnable = (result.folder / result.manifest.graphs[0].folder / "fx_graph_runnable.py").read_text()
    assert INDUCTOR + "realize_reads_threshold = 0" in runnable


def test_a_scripts_own_assignment_wins(tmp_path):
    result = run(tmp_path / "run", fast("sin_cos_thresholds.py"), settings=(("realize_reads_threshold", "7"),))
    assert only(result).context.settings[INDUCTOR + "realize_reads_threshold"] == "0"


def test_without_inlining(tmp_path):
    result = run(tmp_path / "run", fast("sin_cos.py"), ablations=("inlining",))
    found = only(result)
    assert owners(found) == [("cos", "ablation"), ("sin", "ablation")]
    assert (len(found.root.scheduler_nodes), len(found.root.groups)) == (2, 1)
    assert result.manifest.processes[0].switches_installed == ("inlining",)
    assert {entry.function for entry in found.context.patched if entry.by_ablation} == {
        "GraphLowering.run_node",
        "GraphLowering.call_function",
    }


def test_without_inlining_and_fusion(tmp_path):
    result = run(tmp_path / "run", fast("sin_cos.py"), ablations=("inlining+fusion",))
    found = only(result)
    assert [(group.members, group.kernels) for group in found.root.groups] == [
        (("op0",), ("cpp_fused_cos_sin_0",)),
        (("op1",), ("cpp_fused_cos_sin_0",)),
    ]
    assert [(pair.fused, pair.reason) for pair in found.root.pairs] == [(False, "switched off by the ablation fusion")]
    assert [buffer.storage for buffer in found.buffers()] == ["allocated", "output"]


# ---------------------------------------------------------------------------------------------------- facts and reasons


def test_reasons_of_shared_values(tmp_path):
    """exp has two users and is expensive on CPU; relu is returned; the sum is a reduction."""
    found = only(run(tmp_path / "run", fast("shared_values.py")))
    rules = {buffer.origin_node: buffer.realized_by for buffer in found.buffers()}
    assert rules["exp"].rule == "reuse_heavy_op"
    assert rules["exp"].facts["users"] == "2"
    assert rules["exp"].facts["heavy_ops"] == "exp"
    assert rules["relu"].rule == "output"
    assert rules["sum_1"].rule == "reduction"
    assert all(pair.fused or pair.reason for pair in found.root.pairs)


def test_branches_keep_records_of_their_own(tmp_path):
    found = only(run(tmp_path / "run", fast("cond.py")))
    assert [(graph.name, graph.parent) for graph in found.graphs] == [
        ("true_graph_0", ""),
        ("false_graph_0", ""),
        (None, None),
    ]
    assert all(graph.complete for graph in found.graphs)
    names = [buffer.name for buffer in found.buffers()]
    assert len(names) == len(set(names))


# ------------------------------------------------------------------------------------------------------ runs that fail


def test_an_unknown_key_is_told_before_anything_runs(tmp_path):
    with pytest.raises(UsageError, match="has no setting realize_read_threshold") as raised:
        run(tmp_path / "run", fast("sin_cos.py"), settings=(("realize_read_threshold", "0"),))
    assert "realize_reads_threshold" in raised.value.hint
    assert not (tmp_path / "run").exists()


def test_a_crash_keeps_what_was_compiled(tmp_path, capfd):
    result = run(tmp_path / "run", fast("compile_then_crash.py"))
    assert "RuntimeError: after the first graph" in capfd.readouterr().err
    assert result.exit_code == 1
    assert [(entry.kind, entry.message) for entry in result.findings] == [
        ("crashed", "the command ended with exit code 1 after 1 graph")
    ]
    assert only(result).root.complete


def test_torch_without_a_compile(tmp_path):
    program = tmp_path / "lazy.py"
    program.write_text("import torch\nf = torch.compile(torch.sin)\n")
    result = run(tmp_path / "run", script_command(str(program)))
    assert [(entry.kind, entry.message) for entry in result.findings] == [
        ("compiled-nothing", "compiled nothing: torch was imported, but nothing compiled was called")
    ]
    assert result.manifest.torch is not None


def test_a_launcher_with_two_processes(tmp_path):
    launcher = str(PROGRAMS / "two_processes.py")
    result = run(tmp_path / "run", (sys.executable, launcher, FAST, str(PROGRAMS / "sin_cos.py")))
    assert [process.graphs for process in result.manifest.processes] == [1, 1]
    assert len({process.debug_folder for process in result.manifest.processes}) == 2
    assert [owners(found) for found in sidecars(result)] == [[("sin", "output")]] * 2
    assert result.findings == ()


# ---------------------------------------------------------------------------------------- caches, being unobtrusive


def listing(folder: Path) -> dict[str, float]:
    return {str(path): path.stat().st_mtime for path in folder.rglob("*") if path.is_file()}


def test_a_warm_cache_is_neither_read_nor_written_and_artifacts_do_not_change(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    plain = {**os.environ, "TORCH_COMPILE_DEBUG": "1", "TORCH_COMPILE_DEBUG_DIR": str(tmp_path / "plain")}
    subprocess.run(fast("shared_values.py"), env=plain, check=True)
    before = listing(tmp_path / "cache")
    result = run(tmp_path / "run", fast("shared_values.py"))
    assert before
    assert listing(tmp_path / "cache") == before
    assert result.manifest.processes[0].cache.hits == 0
    (mine,) = (result.folder / entry.folder for entry in result.manifest.graphs)
    (theirs,) = (tmp_path / "plain").glob("torch_compile_debug/run_*/torchinductor/model__*")
    for name in ("ir_pre_fusion.txt", "ir_post_fusion.txt", "output_code.py", "fx_graph_transformed.py"):
        assert (mine / name).read_text() == (theirs / name).read_text(), name
