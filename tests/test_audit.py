"""What an audit says of real pairs of runs, and the rules of the ladder on small ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.ablations import ABLATIONS, find
from analyzer.artifacts.manifest import Manifest
from analyzer.artifacts.sidecar_records import Context, PatchedFunction, RecordedGraph, Sidecar
from analyzer.artifacts.trace_log import CompileKey, TraceGraph, TraceRecord
from analyzer.audit import AuditResult, GraphAudit, RungName, Verdict, audit
from analyzer.audit.judge import decide
from analyzer.audit.ladder import Changes, applied, own_settings
from analyzer.audit.postconditions import POSTCONDITIONS
from analyzer.audit.postconditions.record import Arm, Count
from analyzer.compare.effective import Source, config_differences, effective_config
from analyzer.compare.pairing import pair_graphs
from analyzer.compare.sameness import reordered_only, same_code
from analyzer.errors import UsageError
from analyzer.facts import GraphFacts
from analyzer.load import load_run
from analyzer.model import (
    Allocation,
    Artifact,
    ArtifactState,
    CacheState,
    CompiledGraph,
    Location,
    OutputCode,
    Run,
    RunnableScript,
)
from analyzer.verdict import summarize

FIXTURES = Path(__file__).parent.parent / "fixtures" / "ablations"
READ = Artifact("file", ArtifactState.PARSED)


@cache
def run(path: str) -> Run:
    return load_run(FIXTURES / path)


def judged(base: str, ablated: str, ablation: str) -> AuditResult:
    return audit(run(base), run(ablated), ablation)


def only(result: AuditResult) -> GraphAudit:
    (graph,) = result.graphs
    return graph


def arm_of(model: str, arm: str, where: str = "cpu-2.13") -> str:
    return f"{where}/{arm}/{model}"


# ------------------------------------------------------------------------------------------------------ real pairs


def test_code_that_changed_under_equal_counts_is_named() -> None:
    """One call before and after; the function stores cos and loads it again."""
    rungs = only(judged(arm_of("sincos", "baseline"), arm_of("sincos", "inlining+fusion"), "inlining+fusion")).rungs
    code = next(rung for rung in rungs if rung.rung is RungName.CODE)
    assert [citation.text for citation in code.evidence] == ["kernel calls: 1 -> 1; other code in cpp_fused_cos_sin_0"]


PAIRS = [
    ("cpu-2.13/baseline/sincos", "cpu-2.13/realize-thresholds/sincos", "realize-thresholds", "INERT", None),
    ("cpu-2.5/baseline/sincos", "cpu-2.5/realize-thresholds/sincos", "realize-thresholds", "EFFECTIVE", "fusion"),
    ("cpu-2.13/baseline/sincos", "cpu-2.13/inlining/sincos", "inlining", "EFFECTIVE", "fusion"),
    ("cpu-2.13/baseline/sincos", "cpu-2.13/inlining+fusion/sincos", "inlining+fusion", "EFFECTIVE", None),
    ("cpu-2.13/baseline/sincos", "cpu-2.13/inlining+fusion/sincos", "inlining", "CONFOUNDED", None),
    ("cpu-2.13/baseline/sincos", "cpu-2.13/inlining+fusion/sincos", "fusion", "CONFOUNDED", None),
    ("cpu-2.13/baseline/sincos", "cpu-2.13/fusion/sincos", "fusion", "NO_OPPORTUNITY", None),
    ("cpu-2.13/baseline/sincos", "cpu-2.13/vectorization/sincos", "vectorization", "EFFECTIVE", None),
    ("cpu-2.5/baseline/sincos", "cpu-2.13/realize-thresholds/sincos", "realize-thresholds", "CONFOUNDED", None),
    ("cpu-2.13/baseline/softmax", "cpu-2.13/realize-thresholds/softmax", "realize-thresholds", "PARTIAL", None),
    ("cpu-2.13/baseline/softmax", "cpu-2.13/fusion/softmax", "fusion", "EFFECTIVE", None),
    ("cpu-2.13/baseline/softmax", "cpu-2.13/horizontal-fusion/softmax", "horizontal-fusion", "EFFECTIVE", None),
    ("cpu-2.13/baseline/softmax", "cpu-2.13-silent/env_typo", "fusion", "UNAPPLIED", None),
    ("cpu-2.13/baseline/softmax", "cpu-2.13-silent/patch_at_wrap_only", "fusion", "UNAPPLIED", None),
    ("cpu-2.13/baseline/softmax", "cpu-2.13-silent/two_scripts", "fusion", "CONFOUNDED", None),
    ("cpu-2.13/baseline/layernorm", "cpu-2.13-broken/no-post", "fusion", "UNDECIDED", None),
    ("cpu-2.13/baseline/chain_buf", "cpu-2.13/inplace-buffers/chain_buf", "inplace-buffers", "EFFECTIVE", None),
    ("cpu-2.13/baseline/chain_buf", "cpu-2.13/buffer-reuse/chain_buf", "buffer-reuse", "NO_OPPORTUNITY", None),
    ("cpu-2.13/freezing/lin_eval", "cpu-2.13/baseline/lin_eval", "parameter-freezing", "EFFECTIVE", None),
    ("cpu-2.13/baseline/mm_bias", "cpu-2.13/pattern-matching/mm_bias", "pattern-matching", "EFFECTIVE", None),
    (
        "cpu-2.13/baseline/loopord",
        "cpu-2.13/loop-layout-reordering/loopord",
        "loop-layout-reordering",
        "EFFECTIVE",
        None,
    ),
    ("cpu-2.13/baseline/cse_train", "cpu-2.13/cse/cse_train", "cse", "EFFECTIVE", None),
    ("cuda-2.14.1/baseline/foreach4", "cuda-2.14.1/fusion/foreach4", "fusion", "INERT", None),
    ("cuda-2.14.1/baseline/cat_pw", "cuda-2.14.1/cat-as-pointwise/cat_pw", "cat-as-pointwise", "EFFECTIVE", None),
    ("cuda-2.14.1/ma-triton/mm_two", "cuda-2.14.1/ma-triton-noepi/mm_two", "epilogue-fusion", "EFFECTIVE", None),
    ("cuda-2.14.1/baseline/convbn", "cuda-2.14.1/layout-optimization/convbn", "layout-optimization", "EFFECTIVE", None),
    (
        "cuda-2.14.1/baseline/resid",
        "cuda-2.14.1/peak-memory-reordering/resid",
        "peak-memory-reordering",
        "EFFECTIVE",
        None,
    ),
]


@pytest.mark.parametrize(("base", "ablated", "ablation", "verdict", "masked_by"), PAIRS)
def test_the_verdict_on_a_real_pair(
    base: str, ablated: str, ablation: str, verdict: str, masked_by: str | None
) -> None:
    result = judged(base, ablated, ablation)
    assert (result.verdict, result.masked_by) == (verdict, masked_by), [graph.why for graph in result.graphs]


@pytest.mark.parametrize("ablation", [entry.name for entry in ABLATIONS])
@pytest.mark.parametrize("model", ["softmax", "lin_eval", "cse_train"])
def test_a_run_against_itself_never_shows_an_effect(model: str, ablation: str) -> None:
    verdict = judged(arm_of(model, "baseline"), arm_of(model, "baseline"), ablation).verdict
    assert verdict in (Verdict.UNAPPLIED, Verdict.NO_OPPORTUNITY)


# -------------------------------------------------------------------------------------------- the founding example


def test_inert_thresholds_are_explained_by_the_single_user() -> None:
    graph = only(judged(arm_of("sincos", "baseline"), arm_of("sincos", "realize-thresholds"), "realize-thresholds"))
    assert "realize_reads_threshold = 0 and realize_opcount_threshold = 0 when this graph was compiled" in graph.why
    assert "only for a value with more than one user: cos has 1 (sin)" in graph.why
    assert "at least 100 in torch 2.13.0" in graph.why
    assert graph.why.endswith("Use the ablation `inlining`, which realizes every value whatever its users.")
    assert (graph.left_before, graph.left_after) == (("cos",), ("cos",))


def test_the_rungs_of_an_inert_ablation_cite_the_lines_of_its_settings() -> None:
    path = arm_of("sincos", "realize-thresholds")
    graph = only(judged(arm_of("sincos", "baseline"), path, "realize-thresholds"))
    rungs = {rung.rung: rung for rung in graph.rungs}
    assert [rung.held for rung in graph.rungs] == [True, True, False, False, False]
    (source,) = (FIXTURES / path).rglob("fx_graph_runnable.py")
    lines = source.read_text().splitlines()
    for citation in rungs[RungName.APPLIED].evidence:
        assert citation.line is not None
        assert lines[citation.line - 1] == f"torch._inductor.config.{citation.text}"


def test_an_older_torch_does_split_so_the_reason_is_not_about_the_knob() -> None:
    graph = only(judged("cpu-2.5/baseline/sincos", "cpu-2.5/realize-thresholds/sincos", "realize-thresholds"))
    assert graph.left_after == ()
    assert "Fusion put cos back into one group with all readers (op0_op1)" in graph.why


def test_a_hook_that_left_no_record_is_not_recorded_and_the_postcondition_decides() -> None:
    graph = only(judged(arm_of("sincos", "baseline"), arm_of("sincos", "inlining"), "inlining"))
    applied = next(rung for rung in graph.rungs if rung.rung is RungName.APPLIED)
    assert applied.held is None
    assert applied.evidence[0].text.startswith("not recorded")
    assert graph.before is not None
    assert graph.after is not None
    assert (graph.before.scheduler_nodes, graph.after.scheduler_nodes) == (1, 2)


def test_partial_says_what_is_left_and_why() -> None:
    graph = only(judged(arm_of("softmax", "baseline"), arm_of("softmax", "realize-thresholds"), "realize-thresholds"))
    assert (len(graph.left_before), len(graph.left_after)) == (12, 6)
    assert set(graph.left_after) < set(graph.left_before)
    assert "eq_tensor has 1 (mul_tensor_3)" in graph.why


# ------------------------------------------------------------------------------------------------- silent failures


def test_forward_and_backward_are_judged_apart() -> None:
    result = judged("cpu-2.13-silent/plain_mlp", "cpu-2.13-silent/patch_fwd_only", "fusion")
    verdicts = {graph.name: graph.verdict for graph in result.graphs}
    assert verdicts == {"model__0_forward_1.0": Verdict.EFFECTIVE, "model__0_backward_3.1": Verdict.UNAPPLIED}
    assert result.verdict is Verdict.PARTIAL


def test_a_missing_artifact_is_named() -> None:
    graph = only(judged(arm_of("layernorm", "baseline"), "cpu-2.13-broken/no-post", "fusion"))
    assert graph.why.startswith("ablated arm: ir_post_fusion.txt is missing.")


def test_another_input_size_is_named() -> None:
    base = run(arm_of("sincos", "baseline"))
    (graph,) = base.graphs
    assert graph.fx is not None
    nodes = tuple(replace(node, shape=(64,)) if node.op == "placeholder" else node for node in graph.fx.nodes)
    smaller = replace(base, graphs=(replace(graph, fx=replace(graph.fx, nodes=nodes)),))
    why = only(audit(smaller, run(arm_of("sincos", "inlining")), "inlining")).why
    assert "input arg0_1 differs: float32[64] and float32[" in why


def test_another_program_is_told_by_its_source_lines_where_the_graph_may_change() -> None:
    base = run(arm_of("mm_bias", "baseline"))
    (graph,) = base.graphs
    assert graph.fx is not None
    nodes = tuple(
        replace(node, source=replace(node.source, code="return x.cosh()")) if node.source else node
        for node in graph.fx.nodes
    )
    other = replace(base, graphs=(replace(graph, fx=replace(graph.fx, nodes=nodes)),))
    result = audit(other, run(arm_of("mm_bias", "pattern-matching")), "pattern-matching")
    assert result.verdict is Verdict.CONFOUNDED
    assert "different source lines: `return x.cosh()` and" in only(result).why


@pytest.mark.parametrize(
    ("base_cache", "ablated_cache", "ablation", "verdict"),
    [
        (CacheState.COLD, CacheState.WARM, "inlining", Verdict.UNAPPLIED),
        (CacheState.COLD, CacheState.WARM, "fusion", Verdict.UNDECIDED),
        (CacheState.WARM, CacheState.COLD, "fusion", Verdict.CONFOUNDED),
        (CacheState.COLD, CacheState.COLD, "fusion", Verdict.UNDECIDED),
    ],
)
def test_an_arm_from_a_warm_cache(
    base_cache: CacheState, ablated_cache: CacheState, ablation: str, verdict: Verdict
) -> None:
    """A cache hit leaves no graph; a run-time switch is in no cache key, a setting is."""
    full = run(arm_of("softmax", "baseline"))
    base, ablated = (
        replace(full, cache_state=state, graphs=full.graphs if keep else ())
        for state, keep in ((base_cache, base_cache is CacheState.COLD), (ablated_cache, base_cache is CacheState.WARM))
    )
    result = audit(base, ablated, ablation)
    assert result.verdict is verdict
    assert only(result).rungs == ()


def test_two_runs_without_graphs_are_undecided() -> None:
    empty = Run("x", ())
    result = audit(empty, empty, "fusion")
    assert (result.verdict, result.graphs) == (Verdict.UNDECIDED, ())
    assert result.notes == ("neither run holds a compiled graph",)


# ------------------------------------------------------------------------------------------------- capture records


def captured(patched: tuple[PatchedFunction, ...], settings: dict[str, str]) -> Callable[[Run], Run]:
    context = Context(settings=settings, patched=patched)
    sidecar = Sidecar(
        Artifact("inductor_audit.json", ArtifactState.PARSED),
        "2.13.0",
        "3.12",
        1,
        (RecordedGraph(None, context=context),),
    )

    def attach(plain: Run) -> Run:
        bare = (replace(graph, sidecar=sidecar) for graph in plain.graphs)
        return replace(plain, graphs=tuple(bare))

    return attach


HOOK = PatchedFunction("GraphLowering.call_function", "hook.py", 12, "aa", by_ablation=True)
OTHER = PatchedFunction("Scheduler.can_fuse", "mine.py", 3, "bb")


def test_a_recorded_switch_that_was_not_installed_is_unapplied() -> None:
    plain = run(arm_of("sincos", "baseline"))
    result = audit(captured((), {})(plain), captured((), {})(plain), "inlining")
    applied = only(result).rungs[1]
    assert result.verdict is Verdict.UNAPPLIED
    assert applied.held is False


def test_another_replaced_function_confounds() -> None:
    plain, hooked = run(arm_of("sincos", "baseline")), run(arm_of("sincos", "inlining"))
    result = audit(captured((), {})(plain), captured((HOOK, OTHER), {})(hooked), "inlining")
    assert result.verdict is Verdict.CONFOUNDED
    assert "Scheduler.can_fuse (mine.py)" in only(result).why


def test_the_full_configuration_of_a_capture_ignores_how_sets_print() -> None:
    first = captured((), {"torch._dynamo.config.names": "{'a', 'b'}", "torch._inductor.config.max_fusion_size": "64"})
    second = captured((), {"torch._dynamo.config.names": "{'b', 'a'}", "torch._inductor.config.max_fusion_size": "1"})
    plain = run(arm_of("sincos", "baseline"))
    configs = [effective_config(attach(plain).graphs[0]) for attach in (first, second)]
    assert [config.source for config in configs] == [Source.CAPTURE] * 2
    assert [str(difference) for difference in config_differences(*configs)] == ["max_fusion_size: 64 -> 1"]


def script(config: dict[str, str], environment: dict[str, str] | None = None) -> CompiledGraph:
    artifact = Artifact("fx_graph_runnable.py", ArtifactState.PARSED)
    runnable = RunnableScript(artifact, "2.13.0+cpu", config, environment or {})
    return CompiledGraph("g", "inference", "", runnable=runnable)


def test_a_printed_default_is_no_difference() -> None:
    """Every graph after the first of a process lists `inplace_buffers = True` although nobody set it."""
    first, second = script({}), script({"torch._inductor.config.inplace_buffers": "True"})
    assert config_differences(effective_config(first), effective_config(second)) == ()


def test_an_environment_variable_counts_only_if_it_came_before_the_import() -> None:
    config = effective_config(script({}, {"TORCHINDUCTOR_FREEZING": "1", "TORCHINDUCTOR_MAX_FUSION_SIZE": "1"}))
    assert config.requested_by_environment("freezing") == "TORCHINDUCTOR_FREEZING"
    assert config.requested_by_environment("max_fusion_size") is None
    assert config.value("freezing") == "False"


# --------------------------------------------------------------------------------------------- names and manifests


def manifest(*ablations: str) -> Manifest:
    return Manifest("2.13.0", "3.12", "cpu", ("script.py",), "/", ablations)


def test_without_a_name_the_manifest_says_what_was_switched() -> None:
    plain = run(arm_of("sincos", "baseline"))
    ablated = replace(run(arm_of("sincos", "inlining+fusion")), manifest=manifest("fusion", "inlining"))
    result = audit(plain, ablated)
    assert result.ablation == "inlining+fusion"
    assert only(result).rungs[0].evidence[0].text == "captured with --ablation inlining+fusion"


@pytest.mark.parametrize("names", [(), ("cse", "fusion")])
def test_a_missing_or_ambiguous_name_is_a_usage_error(names: tuple[str, ...]) -> None:
    ablated = replace(run(arm_of("sincos", "inlining")), manifest=manifest(*names))
    with pytest.raises(UsageError) as error:
        audit(run(arm_of("sincos", "baseline")), ablated)
    assert "--ablation" in (error.value.hint or "")


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UsageError) as error:
        judged(arm_of("sincos", "baseline"), arm_of("sincos", "baseline"), "inlinning")
    assert "inlining" in (error.value.hint or "")


# ----------------------------------------------------------------------------------------------- pairing, sameness


def test_graphs_whose_numbers_shifted_are_paired_by_content() -> None:
    graph = run(arm_of("sincos", "baseline")).graphs[0]
    other = replace(run(arm_of("mm_bias", "baseline")).graphs[0], name="model__1_inference_1.1")
    shifted = [replace(other, name="model__2_inference_2.2"), graph]
    pairs = pair_graphs([graph, other], shifted, versions=False)
    found = [(pair.base and pair.base.name, pair.ablated and pair.ablated.name) for pair in pairs]
    assert found == [(graph.name, graph.name), ("model__1_inference_1.1", "model__2_inference_2.2")]


def test_code_that_differs_in_comments_and_kernel_names_is_equal() -> None:
    code = run(arm_of("sincos", "baseline")).graphs[0].code
    assert code is not None
    (kernel,) = code.kernels
    steps = tuple(replace(step, callee="cpp_fused_other_7") if hasattr(step, "callee") else step for step in code.steps)
    renamed = replace(kernel, name="cpp_fused_other_7", source="// a comment\n" + kernel.source)
    assert same_code(code, replace(code, kernels=(renamed,), steps=steps))
    changed = replace(kernel, source=kernel.source.replace("sin", "tan"))
    assert not same_code(code, replace(code, kernels=(changed,)))
    assert not reordered_only(code, replace(code, kernels=(changed,)))


def test_the_same_steps_in_another_order_are_only_reordered() -> None:
    code = run(arm_of("chain_buf", "baseline")).graphs[0].code
    assert code is not None
    shuffled = replace(code, steps=tuple(reversed(code.steps)))
    assert not same_code(code, shuffled)
    assert reordered_only(code, shuffled)
    assert not reordered_only(code, replace(code, steps=code.steps[1:]))


# ------------------------------------------------------------------------------------------------------ pure rules

EQUAL = Changes(fx=False, pre=False, post=False, code=False)
CHANGED = Changes(fx=False, pre=True, post=True, code=True)
names = st.lists(st.sampled_from("abcd"), max_size=4, unique=True).map(tuple)


@given(names, names)
def test_counts_alone_decide_between_changed_arms(before: tuple[str, ...], after: tuple[str, ...]) -> None:
    verdict = decide(Count(before), Count(after), CHANGED)
    if before and not after:
        assert verdict is Verdict.EFFECTIVE
    elif len(after) < len(before):
        assert verdict is Verdict.PARTIAL
    else:
        assert verdict is Verdict.UNEXPECTED


@given(names)
def test_equal_arms_are_inert_or_have_no_opportunity(left: tuple[str, ...]) -> None:
    assert decide(Count(left), Count(left), EQUAL) is (Verdict.INERT if left else Verdict.NO_OPPORTUNITY)


def test_an_unknown_fate_decides_nothing_unless_it_cannot_matter() -> None:
    assert decide(Count(("a",)), Count((), ("b",)), CHANGED) is Verdict.UNDECIDED
    assert decide(Count(("a",), ("b",)), Count(), CHANGED) is Verdict.EFFECTIVE
    assert decide(Count((), ("b",)), Count((), ("b",)), EQUAL) is Verdict.UNDECIDED
    assert decide(Count(("a",), ("b",)), Count(("a",), ("b",)), EQUAL) is Verdict.INERT


@given(st.lists(st.sampled_from(Verdict), min_size=1, max_size=5))
def test_a_run_is_summed_up_in_any_order_and_never_better_than_its_graphs(verdicts: list[Verdict]) -> None:
    whole = summarize(verdicts)
    assert whole is summarize(reversed(verdicts))
    if Verdict.UNDECIDED in verdicts:
        assert whole is Verdict.UNDECIDED
    elif Verdict.CONFOUNDED in verdicts:
        assert whole is Verdict.CONFOUNDED
    if whole is Verdict.EFFECTIVE:
        assert set(verdicts) <= {Verdict.EFFECTIVE, Verdict.NO_OPPORTUNITY}
    if len(set(verdicts)) == 1:
        assert whole is verdicts[0]


def test_a_graph_that_falls_short_makes_the_run_partial() -> None:
    assert summarize([Verdict.EFFECTIVE, Verdict.NO_OPPORTUNITY]) is Verdict.EFFECTIVE
    assert summarize([Verdict.EFFECTIVE, Verdict.UNAPPLIED]) is Verdict.PARTIAL
    assert summarize([Verdict.INERT, Verdict.NO_OPPORTUNITY]) is Verdict.INERT
    assert summarize([]) is Verdict.UNDECIDED


# ------------------------------------------------------------------------------------------------ settings in a log

FUSION_SIZE = "torch._inductor.config.max_fusion_size"


def logged(settings: str | None, config: dict[str, str] | None = None, environment: str = "") -> CompiledGraph:
    """A graph with a trace log whose metrics hold these settings, and with a script unless `config` is None."""
    fields = {} if settings is None else {"inductor_config": settings}
    place = Location("trace.log", 7)
    metrics = TraceRecord("compilation_metrics", "compilation_metrics", CompileKey(0, 0), fields, place, 1, b"", 0, 0)
    script = (
        RunnableScript(READ, "2.13.0", config, {environment: "1"} if environment else {})
        if config is not None
        else None
    )
    return CompiledGraph(
        "g", "inference", "", runnable=script, trace=TraceGraph(0, CompileKey(0, 0), {}, metrics=metrics)
    )


def in_force(base: CompiledGraph, ablated: CompiledGraph, ablation: str) -> tuple[bool | None, str, int | None]:
    entry = find(ablation)
    arms = [Arm(GraphFacts(graph), effective_config(graph)) for graph in (base, ablated)]
    rung = applied(arms[0], arms[1], entry, own_settings(entry, POSTCONDITIONS[ablation]))
    return rung.held, rung.evidence[0].text, rung.evidence[0].line


def test_a_setting_from_the_environment_before_the_import_is_read_in_the_trace_log() -> None:
    """The script does not list it; the log lists all settings, with the line of its record."""
    frozen = logged('{"freezing": true}', {}, "TORCHINDUCTOR_FREEZING")
    assert in_force(logged('{"freezing": false}', {}), frozen, "parameter-freezing") == (True, "freezing = True", 7)


def test_a_variable_that_came_too_late_is_not_in_force_and_the_log_says_so() -> None:
    late = logged('{"freezing": false}', {}, "TORCHINDUCTOR_FREEZING")
    plain_run = logged('{"freezing": false}', {})
    too_late = "TORCHINDUCTOR_FREEZING is set, but was not when torch was imported"
    assert in_force(plain_run, late, "parameter-freezing") == (False, too_late, None)
    assert in_force(logged(None, {}), logged(None, {}, "TORCHINDUCTOR_FREEZING"), "parameter-freezing")[0] is None


def test_the_options_of_one_compile_go_before_what_the_log_says_of_the_process() -> None:
    ablated = logged('{"max_fusion_size": 64}', {FUSION_SIZE: "1"})
    assert effective_config(ablated).value(FUSION_SIZE) == "1"
    assert in_force(logged('{"max_fusion_size": 64}', {}), ablated, "fusion")[0] is True


@pytest.mark.parametrize(("value", "held"), [("1", True), ("64", None)])
def test_a_log_alone_shows_what_is_in_force_and_not_what_is_not(value: str, held: bool | None) -> None:
    """Options of a single compile are not in it."""
    base, ablated = logged('{"max_fusion_size": 64}'), logged(f'{{"max_fusion_size": {value}}}')
    assert effective_config(ablated).source is Source.LOG
    assert in_force(base, ablated, "fusion")[0] is held


def test_a_setting_that_this_torch_does_not_have_is_told_so() -> None:
    graph = only(judged("cpu-2.5/baseline/sincos", "cpu-2.5/baseline/sincos", "peak-memory-reordering"))
    assert "has no setting reorder_for_peak_memory (from 2.7 on)" in graph.why
    assert graph.why.endswith("Capture both arms with a torch that has it.")


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000, "Inductor Config is not JSON serializable"])
def test_settings_that_cannot_be_read_are_no_settings(text: str) -> None:
    assert effective_config(logged(text)).source is Source.NONE


def test_strides_of_dimensions_of_size_1_are_no_difference() -> None:
    def code(*stride: int) -> OutputCode:
        return OutputCode(READ, steps=(Allocation("buf0", "empty_strided_cpu", (64, 1), stride, "torch.float32"),))

    assert same_code(code(1, 64), code(1, 1))
    assert not same_code(code(1, 64), code(2, 64))
