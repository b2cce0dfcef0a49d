"""Code for a GPU that is not there: what is decided before, and what is made of the record, without torch."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import cli
from analyzer.analyze import analyze
from analyzer.artifacts import deviceless, ptx
from analyzer.artifacts.deviceless import AUTOTUNE, PAD_MM, SDPA, AssumedChoice, Deviceless
from analyzer.audit import audit
from analyzer.audit.assumed import doubts
from analyzer.capture import CaptureRequest, capture, preflight, profile
from analyzer.capture.preflight import Installed, judge
from analyzer.errors import ArtifactError, CaptureError, UsageError
from analyzer.lab import ArmSpec, Role, Script, Target
from analyzer.lab.keys import arm_key
from analyzer.lab.run import ArmTask
from analyzer.load import load_run
from analyzer.model import Artifact, ArtifactState, CompiledGraph, DumpNode, IrDump
from analyzer.verdict import Verdict
from analyzer.views.deviceless import banner_lines, choice_lines
from analyzer.views.json import report_document
from analyzer.views.ptx import estimate_lines
from analyzer.views.report import ReportView

ROOT = Path(__file__).parent.parent
INSIDE = ROOT / "analyzer/capture/inside"
FIXTURE = ROOT / "fixtures/captured/cuda_max_autotune"


# ----------------------------------------------------------------------------------------------------------- profiles


@pytest.mark.parametrize("name", profile.known())
def test_every_profile_is_whole_and_names_its_sources(name):
    """Sizes that hang together: what a block may use at most fits into a multiprocessor."""
    found = profile.find(f"cuda:{name}")
    figures = found.figures
    assert found.name == name
    assert set(figures) == set(found.sources) == set(profile.FIGURES)
    assert all(len(source) > 20 for source in found.sources.values())
    assert figures["shared_memory_per_block"] <= figures["shared_memory_per_block_optin"]
    assert figures["shared_memory_per_block_optin"] <= figures["shared_memory_per_multiprocessor"]
    assert figures["threads_per_multiprocessor"] % figures["warp_size"] == 0


def test_devices_of_one_architecture_share_its_limits():
    h100, h200 = profile.find("cuda:h100").figures, profile.find("cuda:h200").figures
    same = ("compute_capability", "shared_memory_per_block_optin", "threads_per_multiprocessor")
    assert [h100[key] for key in same] == [h200[key] for key in same]
    assert profile.find("cuda") == profile.find("cuda:a100")


@pytest.mark.parametrize(
    ("name", "memory_mhz"), [("a100", 1593), ("h100", 2619), ("l4", 6251), ("rtx4090", 10501), ("t4", 5001)]
)
def test_bandwidth_is_what_clock_and_bus_give(name, memory_mhz):
    """Two transfers a cycle; the clocks are those that deviceQuery prints."""
    figures = profile.find(f"cuda:{name}").figures
    gigabytes = 2 * memory_mhz * 1e6 * figures["memory_bus_bits"] / 8 / 1e9
    assert figures["memory_bandwidth_gbps"] == pytest.approx(gigabytes, rel=0.01)


@pytest.mark.parametrize("target", ["cpu", "cuda:", "cuda:a1000", "rocm", "cuda:h100:2", ""])
def test_other_targets_are_refused(target):
    with pytest.raises(UsageError) as error:
        profile.find(target)
    assert "h100" in str(error.value.hint)


def test_a_profile_of_ones_own(tmp_path):
    document = json.loads((profile.FOLDER / "a100.json").read_text(encoding="utf-8"))
    document["name"] = "mine"
    document["figures"]["multiprocessors"] = {"value": 7, "source": "counted"}
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    found = profile.find("cuda", file)
    assert (found.name, found.figures["multiprocessors"], found.sources["multiprocessors"]) == ("mine", 7, "counted")
    with pytest.raises(UsageError, match="two devices"):
        profile.find("cuda:h100", file)


@pytest.mark.parametrize(
    ("figure", "value"),
    [
        ("multiprocessors", None),
        ("multiprocessors", "many"),
        ("multiprocessors", True),
        ("multiprocessors", 0),
        ("l2_bytes", 1e300),
        ("name", 4),
        ("compute_capability", [8]),
        ("compute_capability", ["8", 0]),
    ],
)
def test_a_figure_that_is_none_is_named(tmp_path, figure, value):
    document = json.loads((profile.FOLDER / "a100.json").read_text(encoding="utf-8"))
    document["figures"][figure] = {"value": value, "source": "x"}
    file = tmp_path / "bad.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(UsageError, match=f"the figure {figure}"):
        profile.read(file)


def test_a_figure_without_a_source_is_refused(tmp_path):
    document = json.loads((profile.FOLDER / "t4.json").read_text(encoding="utf-8"))
    del document["figures"]["l2_bytes"]["source"]
    file = tmp_path / "bad.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(UsageError, match="l2_bytes names no source"):
        profile.read(file)


def test_a_profile_that_is_no_json_tells_the_place(tmp_path):
    file = tmp_path / "bad.json"
    file.write_text('{"schema_version": 1,\n "figures": oops}', encoding="utf-8")
    with pytest.raises(ArtifactError) as error:
        profile.read(file)
    assert (error.value.location.line, error.value.location.column) == (2, 13)


# ---------------------------------------------------------------------------------------------------------- preflight


def test_a_cuda_wheel_that_was_tried_is_supported():
    assert judge(Installed("2.14.1+cu130", cuda=True, triton="3.8.0")) == preflight.Support("supported")


@pytest.mark.parametrize(
    ("installed", "part"),
    [
        (Installed("2.13.0+cpu", cuda=False, triton="3.7.1"), "no CUDA"),
        (Installed("2.13.0+cu128", cuda=True, triton="3.7.1"), "older than 2.14"),
        (Installed("2.15.0+cu132", cuda=True, triton="3.8.0"), "goes with triton 3.9.0, this is 3.8.0"),
        (Installed("2.99.0", cuda=True, triton="9.9.9"), "never tried"),
    ],
)
def test_what_was_never_promised_is_experimental(installed, part):
    found = judge(installed)
    assert found.level == "experimental"
    assert any(part in note for note in found.notes)


@pytest.mark.parametrize(
    ("installed", "part", "hint"),
    [
        (
            Installed("2.13.0+cpu", cuda=False, triton=None),
            "their/python has no triton",
            "their/python -m pip install triton==3.7.1",
        ),
        (Installed("2.14.1", cuda=True, triton="3.8.0", platform="darwin"), "needs Linux", "Linux"),
        (Installed("2.5.1", cuda=True, triton="3.1.0"), "too old", "2.14"),
        (Installed("2.14.1", cuda=False, triton="3.8.0", hip="6.2"), "ROCm", "CUDA"),
    ],
)
def test_what_cannot_work_is_said_before_anything_runs(installed, part, hint):
    with pytest.raises(CaptureError, match=part) as error:
        judge(installed, "their/python")
    assert hint in str(error.value.hint)


def test_a_version_that_was_never_tried_is_told_before_anything_runs(tmp_path, monkeypatch, capsys):
    """The capture goes on, since it may work."""
    never = Installed("2.99.0+cu140", cuda=True, triton="4.0.0")
    monkeypatch.setattr(preflight, "ask", lambda python: never)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nothing.py").write_text("", encoding="utf-8")
    cli.main(["capture", "--target", "cuda:t4", "nothing.py"])
    assert capsys.readouterr().err.splitlines()[0] == "note: experimental: torch 2.99.0+cu140 was never tried"


def test_options_without_a_target_are_refused_before_a_folder_is_made(tmp_path):
    for options in ({"ptx": True}, {"profile": tmp_path / "x.json"}):
        with pytest.raises(UsageError, match="needs --target"):
            capture(CaptureRequest((sys.executable, "-c", "1"), out=tmp_path / "run", **options))
    assert not (tmp_path / "run").exists()


# ------------------------------------------------------------------------------------------------------ deviceless.json


def record(*choices: AssumedChoice, **changes) -> Deviceless:
    artifact = Artifact("deviceless.json", ArtifactState.PARSED, 1)
    return replace(Deviceless(artifact, "h100", "NVIDIA H100 80GB HBM3", choices=choices), **changes)


def graph(*choices: AssumedChoice, **changes) -> CompiledGraph:
    return CompiledGraph("model__0_inference_0.0", "inference", "x", deviceless=record(*choices, **changes))


def test_the_record_of_a_real_capture():
    """22 kernels were candidates for one product of half precision; the first Triton template was taken."""
    (found,) = load_run(FIXTURE).graphs
    assert found.deviceless is not None
    assert (found.deviceless.profile, found.deviceless.device) == ("a100", "NVIDIA A100-SXM4-80GB")
    (choice,) = found.deviceless.choices
    assert (choice.kind, choice.subject, choice.chosen) == (AUTOTUNE, "22 kernels for mm (512, 1024)", "triton_mm_0")
    used = {patch.name for patch in found.deviceless.patches if patch.hits}
    assert {"device queries", "allocation", "triton driver", "autotuning"} <= used
    assert all(patch.installed and patch.error is None for patch in found.deviceless.patches)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"schema_version": 2}', '{"schema_version": "1"}'])
def test_text_that_is_no_record_is_an_error_with_a_place(text):
    with pytest.raises(ArtifactError):
        deviceless.parse(text, "deviceless.json")


def test_values_of_other_types_are_left_out():
    text = json.dumps(
        {
            "schema_version": 1,
            "profile": 3,
            "support": [],
            "choices": [{"kind": "sdpa", "count": "many"}, 7],
            "patches": [{"name": None}],
        }
    )
    found = deviceless.parse(text, "deviceless.json")
    assert found.profile == "unknown"
    assert found.choices == (AssumedChoice("sdpa", "", "", ""),)
    assert found.patches[0].installed is False


# ------------------------------------------------------------------------------------------------- verdicts and banner

WINNER = AssumedChoice(AUTOTUNE, "22 kernels for mm (512, 1024)", "triton_mm_0", "nothing was timed")
UNPADDED = AssumedChoice(PAD_MM, "aten.mm of (1023, 2047)", "not padded", "nothing was timed")
ATTENTION = AssumedChoice(SDPA, "attention", "flash", "order of preference")


@pytest.mark.parametrize(
    ("ablation", "verdict", "choices", "doubted"),
    [
        ("matmul-templates", Verdict.EFFECTIVE, (WINNER,), True),
        ("epilogue-fusion", Verdict.NO_OPPORTUNITY, (WINNER,), True),
        ("matmul-templates", Verdict.UNAPPLIED, (WINNER,), False),
        ("matmul-templates", Verdict.CONFOUNDED, (WINNER,), False),
        ("inlining", Verdict.EFFECTIVE, (WINNER, UNPADDED, ATTENTION), False),
        ("pattern-matching", Verdict.NO_OPPORTUNITY, (UNPADDED,), True),
        ("pattern-matching", Verdict.EFFECTIVE, (UNPADDED,), False),
        ("matmul-templates", Verdict.EFFECTIVE, (UNPADDED, ATTENTION), False),
        ("matmul-templates", Verdict.EFFECTIVE, (), False),
        ("fusion", Verdict.NO_OPPORTUNITY, (ATTENTION,), True),
        ("fusion", Verdict.EFFECTIVE, (ATTENTION,), False),
    ],
)
def test_a_verdict_is_doubted_only_where_an_assumption_decided_it(ablation, verdict, choices, doubted):
    bare = CompiledGraph("g", "inference", "x")
    assert bool(doubts(ablation, verdict, (graph(*choices), bare))) is doubted
    assert bool(doubts(ablation, verdict, (bare, graph(*choices)))) is doubted
    assert doubts(ablation, verdict, (bare, bare)) == ()


def post(*groups: tuple[str, bool]) -> CompiledGraph:
    """A graph with an assumed winner, and groups of two members; in some the first is a template."""
    nodes = tuple(
        DumpNode(
            name,
            "FusedSchedulerNode",
            ("SchedulerNode", "SchedulerNode"),
            members=(
                DumpNode(name.split("_")[0], "SchedulerNode", ("TritonTemplateBuffer",) if template else ()),
                DumpNode(name.split("_")[1], "SchedulerNode", ("ComputedBuffer",)),
            ),
        )
        for name, template in groups
    )
    dump = IrDump(Artifact("ir_post_fusion.txt", ArtifactState.PARSED), nodes)
    return replace(graph(WINNER), post=dump)


EPILOGUE, POINTWISE = ("op0_op1", True), ("op2_op3", False)


@pytest.mark.parametrize(
    ("ablation", "groups", "counted", "doubted"),
    [
        ("fusion", (EPILOGUE,), ("op0_op1",), True),
        ("fusion", (EPILOGUE, POINTWISE), ("op0_op1", "op2_op3"), False),
        ("fusion", (), (), True),
        ("vertical-fusion", (EPILOGUE, POINTWISE), ("op0 -> op1",), True),
        ("vertical-fusion", (EPILOGUE, POINTWISE), ("op0 -> op1", "op2 -> op3"), False),
        ("inlining+fusion", (EPILOGUE,), ("op0_op1", "relu"), False),
        ("horizontal-fusion", (EPILOGUE,), (), False),
    ],
)
def test_fusion_is_doubted_only_where_a_template_has_all_that_was_fused(ablation, groups, counted, doubted):
    """Had the library's kernel won, its epilogue would be a kernel of its own; other groups would be fused still."""
    assert bool(doubts(ablation, Verdict.EFFECTIVE, (post(*groups), graph()), counted)) is doubted


def test_arms_for_two_devices_are_not_compared(tmp_path):
    fixture = ROOT / "fixtures/captured/cuda_sin_cos"
    shutil.copytree(fixture, tmp_path / "run")
    (file,) = (tmp_path / "run").glob("torch_compile_debug/run_*/torchinductor/*/deviceless.json")
    told = file.read_text(encoding="utf-8")
    file.write_text(told.replace("NVIDIA A100-SXM4-80GB", "Tesla T4"), encoding="utf-8")
    judged = audit(load_run(fixture), load_run(tmp_path / "run"), "fusion")
    assert judged.verdict is Verdict.CONFOUNDED
    assert "Tesla T4, which was not there" in judged.graphs[0].why


def test_the_doubt_names_the_choice():
    (reason,) = doubts("matmul-templates", Verdict.EFFECTIVE, (graph(WINNER), graph(WINNER)))
    assert "which kernel is the fastest" in reason
    assert "triton_mm_0 was assumed" in reason


def lines(found) -> str:
    return "\n".join(line.plain for line in found)


def test_the_banner_tells_the_device_the_doubts_about_torch_and_what_was_not_replaced():
    broken = deviceless.AppliedPatch("autotuning", "", installed=False, error="AttributeError: x")
    facts = SimpleNamespace(graph=graph(support_notes=("torch 2.13.0+cpu is old",), patches=(broken,)))
    text = lines(banner_lines([facts]))
    assert "code for NVIDIA H100 80GB HBM3, generated without one; nothing ran" in text
    assert "torch 2.13.0+cpu is old" in text
    assert "Not replaced in torch: autotuning" in text
    assert lines(banner_lines([SimpleNamespace(graph=CompiledGraph("g", "inference", "x"))])) == ""


def test_a_report_begins_with_the_banner(show):
    """The graph itself is reported as any other: one Triton kernel for both ops."""
    run = load_run(ROOT / "fixtures/captured/cuda_sin_cos")
    text = show(ReportView(run, [analyze(graph) for graph in run.graphs]), width=100)
    assert text.splitlines()[2] == "  No device: code for NVIDIA A100-SXM4-80GB, generated without one; nothing ran"
    assert "triton_poi_fused_cos_sin_0  Triton, 1 call" in text
    assert "Experimental" not in text


def test_assumed_choices_are_listed_by_question_without_control_characters():
    odd = replace(ATTENTION, chosen="fl\x1b[31mash")
    text = lines(choice_lines(record(WINNER, odd), full=True))
    assert "which kernel is the fastest (1 choice)" in text
    assert "\x1b" not in text


# ------------------------------------------------------------------------------------------------ estimates by ptxas

ESTIMATES = {
    "schema_version": 1,
    "kernels": {
        "triton_poi_fused_cos_sin_0": {
            "config": {"XBLOCK": 1024, "num_warps": 4},
            "configs": 2,
            "registers": 22,
            "spill_stores": 0,
            "spill_loads": 0,
            "stack_frame": 0,
            "shared_bytes": 0,
        },
        "triton_tem_fused_mm_1": {"registers": 255, "spill_stores": 24, "spill_loads": 40, "shared_bytes": 49152},
        "triton_red_fused_sum_2": {"error": "OutOfResources: \x1b[31mshared"},
    },
}


def estimated(document: dict) -> ptx.PtxEstimates:
    return ptx.parse(json.dumps(document), "ptx.json")


def test_estimates_begin_with_what_is_worst():
    """What failed, what spills (24 bytes stored and 40 loaded), then the kernels with most registers."""
    assert lines(estimate_lines(estimated(ESTIMATES), full=True)).splitlines() == [
        "Not estimated: triton_red_fused_sum_2: OutOfResources: \\x1b[31mshared",
        "Estimated: triton_tem_fused_mm_1 255 registers per thread, 64 bytes spilled, 49.2 kB shared per block",
        "Estimated: triton_poi_fused_cos_sin_0 22 registers per thread, no spills, 0 bytes shared per block "
        "(XBLOCK=1024, num_warps=4; first of 2 configurations)",
    ]
    assert lines(estimate_lines(None, full=True)) == ""


def test_estimates_that_are_none_are_unknown():
    odd = {"schema_version": 1, "kernels": {"k": {"registers": "many", "config": 7}, "l": None}}
    assert estimated(odd).kernels == (ptx.KernelEstimate("k"), ptx.KernelEstimate("l"))
    assert "? registers per thread, ? spilled, ? shared" in lines(estimate_lines(estimated(odd), full=False))
    with pytest.raises(ArtifactError, match="schema_version"):
        estimated({"kernels": {}})


def test_a_report_shows_estimates_where_the_file_is(tmp_path, show):
    shutil.copytree(ROOT / "fixtures/captured/cuda_sin_cos", tmp_path / "run")
    (folder,) = (tmp_path / "run").glob("torch_compile_debug/run_*/torchinductor/*")
    (folder / "ptx.json").write_text(json.dumps(ESTIMATES), encoding="utf-8")
    run = load_run(tmp_path / "run")
    facts = [analyze(graph) for graph in run.graphs]
    assert "Estimated: triton_tem_fused_mm_1 255 registers" in show(ReportView(run, facts), width=120)
    (told,) = report_document(run, facts)["graphs"]
    assert [kernel["registers"] for kernel in told["estimates"]] == [22, 255, None]
    assert told["estimates"][2]["reason"].startswith("OutOfResources")


# ---------------------------------------------------------------------------------------------------- the laboratory


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--target", "cuda:a100", "--time"), "nothing to time: with --target cuda:a100, no kernel runs"),
        (("--codegen-only", "--factorial", "--ablation", "inlining"), "with --codegen-only, no kernel runs"),
        (("--target", "cuda:gtx480"), "no profile of a device 'gtx480'"),
        (("--profile", "nowhere.json"), "--profile needs --target cuda"),
    ],
)
def test_experiments_without_a_device_that_make_no_sense(tmp_path, monkeypatch, capsys, options, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text("", encoding="utf-8")
    assert cli.main(["ablate", *options, "--ablation", "fusion", "script.py"]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_an_arm_for_another_device_is_another_arm(tmp_path):
    (tmp_path / "main.py").write_text("", encoding="utf-8")
    (tmp_path / "mine.json").write_text("{}", encoding="utf-8")
    spec = ArmSpec("baseline", Role.BASELINE)
    targets = (
        Target(),
        Target(codegen_only=True),
        Target("cuda", codegen_only=True),
        Target("cuda:h100", codegen_only=True),
        Target("cuda", tmp_path / "mine.json", codegen_only=True),
    )
    tasks = [ArmTask(Script("main.py"), spec, tmp_path, tmp_path, "python", target=target) for target in targets]
    keys = {arm_key(task, "2.13.0", {}) for task in tasks}
    assert len(keys) == len(targets)
    (tmp_path / "mine.json").write_text("{ }", encoding="utf-8")
    assert arm_key(tasks[-1], "2.13.0", {}) not in keys


# ---------------------------------------------------------------------------------------------- the table in the child


def table():
    """The child's package, which needs no torch until something is installed."""
    sys.path.insert(0, str(INSIDE))
    try:
        return importlib.import_module("inductor_audit_inside.deviceless.table")
    finally:
        sys.path.remove(str(INSIDE))


def test_every_replacement_has_a_name_a_reason_and_a_function():
    entries = table().TABLE
    assert len({entry.name for entry in entries}) == len(entries)
    for entry in entries:
        module, function = entry.where.split(":")
        source = (INSIDE / f"inductor_audit_inside/deviceless/{module}.py").read_text(encoding="utf-8")
        assert f"def {function}(" in source
        assert len(entry.reason) > 20


def test_a_replacement_is_for_its_versions():
    patch = next(entry for entry in table().TABLE if entry.before == (2, 13))
    assert [patch.is_for(release) for release in ((2, 6), (2, 7), (2, 12), (2, 13))] == [False, True, True, False]


def test_only_stopping_is_needed_where_the_device_is_there():
    names = {entry.name for entry in table().TABLE if entry.codegen_only}
    assert names == {"stop after code generation", "compiled module"}
