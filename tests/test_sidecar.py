"""Reading what a capture recorded: exact facts in, positions for what cannot be read, nothing lost to unknown keys."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.artifacts import manifest, sidecar
from analyzer.artifacts.manifest import CacheCounts, Finding
from analyzer.errors import ArtifactError
from analyzer.model import ArtifactState

CAPTURED = Path(__file__).parent.parent / "fixtures/captured"


def graph(**facts: object) -> sidecar.RecordedGraph:
    text = json.dumps({"schema_version": 1, "graphs": [{"name": None, "complete": True, **facts}]})
    root = sidecar.parse(text, "inductor_audit.json").root
    assert root is not None
    return root


def buffer(name: str = "buf0", **facts: object) -> dict[str, object]:
    return {"name": name, "operation": "op0", "ir_class": "ComputedBuffer", "layout": "FixedLayout", **facts}


# ------------------------------------------------------------------------------------------------------ hand-made text


@pytest.mark.parametrize(
    ("facts", "storage", "shares"),
    [
        ({}, "unknown", None),
        ({"allocated": ["buf0"]}, "allocated", None),
        ({"pooled": ["buf0"]}, "allocated", None),
        ({"reuses": [["buf0", "buf9"]]}, "reused", "buf9"),
        ({"removed_buffers": ["buf0"], "allocated": ["buf0"]}, "removed", None),
        ({"outputs": ["buf0"], "allocated": ["buf0"]}, "output", None),
        ({"outputs": ["buf0"], "reuses": [["buf0", "buf9"]]}, "output", "buf9"),
    ],
)
def test_storage_of_a_buffer(facts, storage, shares):
    found = graph(buffers=[buffer()], **facts).buffers[0]
    assert (found.storage, found.shares_with) == (storage, shares)


@pytest.mark.parametrize(
    ("facts", "storage", "shares"),
    [
        ({"layout": "NoneLayout", "mutates": ["arg0_1"]}, "none", None),
        ({"layout": "NonOwningLayout", "alias_of": "buf3"}, "alias", "buf3"),
        ({"layout": "MutationLayoutSHOULDREMOVE", "alias_of": "arg1_1"}, "alias", "arg1_1"),
        ({"ir_class": "FallbackKernel"}, "allocated", None),
    ],
)
def test_storage_by_layout_and_class(facts, storage, shares):
    found = graph(buffers=[{**buffer(), **facts}]).buffers[0]
    assert (found.storage, found.shares_with) == (storage, shares)


def test_a_group_knows_its_kernels_and_extern_calls():
    found = graph(
        groups=[
            {"name": "op0_op1", "class": "FusedSchedulerNode", "members": ["op0", "op1"]},
            {"name": "op2", "class": "ExternKernelSchedulerNode", "members": ["op2"]},
            {"name": "op3", "class": "SchedulerNode", "members": ["op3"]},
        ],
        kernels=[
            {"name": "cpp_fused_0", "backend": "CppScheduling", "members": ["op0", "op1", "op3"]},
        ],
        extern_calls=[{"name": "extern_kernels.mm", "ir_class": "ExternKernelOut", "member": "op2"}],
        bytes_accessed={"op0_op1": 96},
    )
    assert [(group.name, group.kernels, group.bytes_accessed) for group in found.groups] == [
        ("op0_op1", ("cpp_fused_0",), 96),
        ("op2", ("extern_kernels.mm",), None),
        ("op3", ("cpp_fused_0",), None),
    ]


def test_a_realization_keeps_the_rules_numbers():
    birth = {
        "rule": "reuse_reads",
        "node": "mul",
        "site": "graph.py:2121 run_node",
        "users": 3,
        "reads": 5,
        "threshold": 4,
    }
    found = graph(buffers=[buffer(realized_by=birth)]).buffers[0].realized_by
    assert found is not None
    assert found.because == "several users read it, and it reads more than the reuse limit allows"
    assert (found.node, found.site) == ("mul", "graph.py:2121 run_node")
    assert found.facts == {"users": "3", "reads": "5", "threshold": "4"}


def test_a_rule_of_a_newer_torch_is_kept_verbatim():
    found = graph(buffers=[buffer(realized_by={"rule": "by_magic"})]).buffers[0].realized_by
    assert found is not None
    assert found.because == "by_magic"


def test_symbolic_sizes_stay_text():
    found = graph(buffers=[buffer(size=["s33", 4], stride=[4, 1], num_bytes=None)]).buffers[0]
    assert (found.size, found.stride, found.num_bytes) == (("s33", 4), (4, 1), None)


def test_settings_of_all_three_modules_get_full_keys():
    context = {
        "config": {"max_fusion_size": "64"},
        "functorch_config": {"cse": "True"},
        "dynamo_config": {"verbose": "False"},
    }
    found = graph(context=context).context
    assert found is not None
    assert found.settings == {
        "torch._inductor.config.max_fusion_size": "64",
        "torch._functorch.config.cse": "True",
        "torch._dynamo.config.verbose": "False",
    }


def test_unknown_keys_and_wrong_types_cost_only_themselves():
    found = graph(future={"a": 1}, inputs="arg0_1", pairs_dropped="many", buffers=[buffer(num_bytes="4", new=1), 7])
    assert found.inputs == ()
    assert found.pairs_dropped == 0
    assert [(entry.name, entry.num_bytes) for entry in found.buffers] == [("buf0", None)]


# -------------------------------------------------------------------------------------------------- what is no sidecar


@pytest.mark.parametrize("parse", [sidecar.parse, manifest.parse])
def test_malformed_json_is_told_with_its_position(parse):
    with pytest.raises(ArtifactError) as raised:
        parse('{"schema_version": 1,\n "graphs": [}\n', "x.json")
    assert str(raised.value.location) == "x.json:2:13"
    assert str(raised.value).splitlines()[1:] == ['     "graphs": [}', "                ^"]


@pytest.mark.parametrize("graphs", ['{"a": 3}', "7", '"none"'])
def test_graphs_of_another_type_are_an_error_and_not_an_empty_record(graphs):
    with pytest.raises(ArtifactError, match="expected a list of graphs"):
        sidecar.parse(f'{{"schema_version": 1, "graphs": {graphs}}}', "x.json")


def test_the_caret_of_a_long_line_stands_under_a_short_excerpt():
    text = '{"schema_version": 1, "a": "' + "x" * 100_000 + '", }'
    with pytest.raises(ArtifactError) as raised:
        sidecar.parse(text, "x.json")
    _, excerpt, caret = str(raised.value).splitlines()
    assert raised.value.location.column == len(text)
    assert len(excerpt) < 130
    assert excerpt[caret.index("^")] == "}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "expected a JSON object (a capture sidecar), found list"),
        ("{}", "expected schema_version 1 (a capture sidecar), found None"),
        ('{"schema_version": "1"}', "expected schema_version 1 (a capture sidecar), found '1'"),
        ('{"schema_version": 2}', "a capture sidecar of schema version 2; this release reads up to 1"),
        ("[" * 200_000, "a capture sidecar is nested too deeply or holds a number too long"),
    ],
)
def test_other_documents_are_told_apart(text, message):
    with pytest.raises(ArtifactError) as raised:
        sidecar.parse(text, "x.json")
    assert raised.value.message == message


def test_a_newer_schema_says_what_to_do():
    with pytest.raises(ArtifactError) as raised:
        manifest.parse('{"schema_version": 9}', "manifest.json")
    assert raised.value.hint == "Update inductor-audit."


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
KEYS = ["graphs", "notes", "processes", "findings", "settings", "duration_s", "command"]
GRAPH_KEYS = [
    "buffers",
    "groups",
    "kernels",
    "reuses",
    "context",
    "fusion_pairs",
    "lowerings",
    "bytes_accessed",
    "outputs",
]


@given(st.dictionaries(st.sampled_from(KEYS), anything), st.dictionaries(st.sampled_from(GRAPH_KEYS), anything))
def test_any_values_behind_known_keys_are_survived(top, inner):
    text = json.dumps({**top, "schema_version": 1})
    manifest.parse(text, "manifest.json")
    with nullcontext() if isinstance(top.get("graphs", []), list) else pytest.raises(ArtifactError):
        sidecar.parse(text, "x.json")
    graph(**inner)
    graph(buffers=[inner], groups=[inner], kernels=[inner], context=inner, fusion_pairs=[inner])


@given(st.text(max_size=40))
def test_any_text_is_answered_with_a_typed_error(text):
    with pytest.raises(ArtifactError):
        sidecar.parse(text, "x.json")


# --------------------------------------------------------------------------------------- captured by the hook, verbatim


def captured(run: str) -> sidecar.Sidecar:
    path = next((CAPTURED / run).glob("torch_compile_debug/run_*/torchinductor/*/inductor_audit.json"))
    return sidecar.parse(path.read_text(encoding="utf-8"), str(path))


def test_the_founding_run_has_one_buffer_with_both_ops():
    found = captured("sin_cos_thresholds")
    assert found.artifact.state is ArtifactState.PARSED
    root = found.root
    assert root is not None
    assert [(entry.name, entry.origin_node, entry.origins) for entry in root.buffers] == [
        ("buf0", "sin", ("cos", "sin"))
    ]
    assert root.buffers[0].realized_by.rule == "output"
    assert root.buffers[0].num_bytes == 4000
    assert [group.kernels for group in root.groups] == [("cpp_fused_cos_sin_0",)]
    assert found.context.settings["torch._inductor.config.realize_reads_threshold"] == "0"
    assert found.context.patched == ()


def test_the_founding_run_says_why_cos_stayed_inline():
    cos = captured("sin_cos_thresholds").root.lowerings[0]
    assert (cos.node, cos.users, cos.buffer) == ("cos", 1, None)
    assert cos.exceeded_max_reads is True  # the threshold of 0 did fire ...
    assert cos.hinted is True  # ... and proposed to realize ...
    assert cos.nontrivial_reads == 1  # ... which needs more than one nontrivial read
    assert cos.realize_on_reuse is None  # never asked: there is one user


def test_without_inlining_both_ops_are_realized_and_then_fused():
    found = captured("sin_cos_inlining")
    root = found.root
    assert [(entry.origin_node, entry.realized_by.rule) for entry in root.buffers] == [
        ("cos", "ablation"),
        ("sin", "ablation"),
    ]
    assert [node.name for node in root.scheduler_nodes] == ["op0", "op1"]
    assert [group.members for group in root.groups] == [("op0", "op1")]
    assert [(pair.first, pair.second, pair.fused) for pair in root.pairs] == [(("op0",), ("op1",), True)]
    assert {(entry.function, entry.by_ablation) for entry in found.context.patched} == {
        ("GraphLowering.run_node", True),
        ("GraphLowering.call_function", True),
    }


def test_a_manifest_as_written():
    text = (CAPTURED / "sin_cos_inlining/manifest.json").read_text(encoding="utf-8")
    found = manifest.parse(text, "manifest.json")
    assert (found.torch, found.exit_code, found.ablations) == ("2.13.0+cpu", 0, ("inlining",))
    assert [entry.graphs for entry in found.processes] == [1]
    assert found.processes[0].cache == CacheCounts()
    assert found.processes[0].switches_installed == ("inlining",)
    assert [entry.complete for entry in found.graphs] == [True]
    assert found.findings == ()


def test_findings_are_read_with_their_hints():
    text = json.dumps(
        {"schema_version": 1, "findings": [{"kind": "crashed", "message": "m", "hint": None}, {"kind": "x"}]}
    )
    assert manifest.parse(text, "m").findings == (Finding("crashed", "m"), Finding("x", ""))
