"""Views: what a person sees for facts reasoned out by hand, and that no artifact text can act on a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.errors import ArtifactError, UsageError
from analyzer.facts import Conflict, Evidence, Fate, GraphFacts, GroupFact, NodeFact, Storage, Summary
from analyzer.model import Artifact, ArtifactState, CacheState, FxNode, Location, Problem, Run
from analyzer.views.error import ErrorView
from analyzer.views.fates import fate_text
from analyzer.views.json import dumps, report_document
from analyzer.views.report import ReportView, chain
from analyzer.views.text import byte_text, counted, listed, plain, shortened

Show = Callable[..., str]
HOSTILE = ("[bold]x[/bold]", "[link=https://evil]y[/link]", "\x1b[31mred", "\x9b2J", "\u202edrow", "a\nb", "n" * 300)


# ------------------------------------------------------------------------------------------------------------ report


@pytest.mark.parametrize("width", [80, 200])
def test_report_of_the_founding_example(
    show: Show, golden: Callable[[str], str], cold_run: Run, sin_cos: GraphFacts, width: int
) -> None:
    assert show(ReportView(cold_run, [sin_cos]), width) == golden(f"report_sin_cos_{width}.txt")


def test_report_without_graphs_says_so_and_what_to_do(show: Show) -> None:
    text = show(ReportView(Run("warm", (), "2.13.0", CacheState.WARM, notes=("2 graphs came from the FX cache",)), []))
    assert "No compiled graph was found here." in text
    assert "Note: 2 graphs came from the FX cache" in text
    assert "next: inductor-audit capture" in text


def test_report_of_a_mixed_run_tells_that_graphs_are_missing(show: Show, cold_run: Run, sin_cos: GraphFacts) -> None:
    text = show(ReportView(replace(cold_run, cache_state=CacheState.MIXED), [sin_cos]), 200)
    assert "Note: graphs that came from a cache left no folder and are missing below" in text


def test_settings_that_nobody_made_are_not_told(show: Show, cold_run: Run, sin_cos: GraphFacts) -> None:
    text = show(ReportView(cold_run, [sin_cos]), 200)
    assert "Settings: realize_reads_threshold = 0, realize_opcount_threshold = 0\n" in text
    assert "unlift_effect_tokens" not in text


def test_report_admits_what_it_does_not_know(show: Show, cold_run: Run, sin_cos: GraphFacts) -> None:
    unknown = NodeFact(FxNode("mul", "call_function", "aten.mul.Tensor"), Fate.UNKNOWN, reason="ambiguous: buf0, buf1")
    conflict = Conflict("buf0", Evidence.ALIGNMENT, "sin", Evidence.NAME, "cos")
    facts = replace(sin_cos, nodes=(*sin_cos.nodes, unknown), conflicts=(conflict,))
    text = show(ReportView(cold_run, [facts]), 200)
    assert (
        "Attributed: 2 of 3 ops (1 by provenance, 1 by alignment, 1 unknown); 1 of 1 buffer (1 by provenance)" in text
    )
    assert "unknown: mul: ambiguous: buf0, buf1" in text
    assert "Conflict: buf0: alignment says sin (believed), name says cos" in text


def test_report_lists_artifacts_that_were_not_read_whole(show: Show, cold_run: Run, sin_cos: GraphFacts) -> None:
    problem = Problem(Location("ir_post_fusion.txt", 7, 3), "expected a dependency", "op0.writes = ?", 2)
    broken = Artifact("ir_post_fusion.txt", ArtifactState.PARTIAL, 24, (problem,))
    missing = Artifact("provenance.json", ArtifactState.MISSING, cause="torch 2.5 does not write it")
    facts = replace(sin_cos, graph=replace(sin_cos.graph, artifacts=(broken, missing)))
    text = show(ReportView(cold_run, [facts]), 100)
    assert "Partial: ir_post_fusion.txt, 2 of 24 lines not understood\n" in text
    assert "ir_post_fusion.txt:7:3: expected a dependency\n" in text
    assert "Missing: provenance.json (torch 2.5 does not write it)\n" in text


def test_long_graphs_are_cut_and_full_shows_all(show: Show, cold_run: Run, sin_cos: GraphFacts) -> None:
    ops = tuple(
        NodeFact(FxNode(f"relu_{i}", "call_function", "aten.relu.default"), Fate.FOLDED, evidence=Evidence.ALIGNMENT)
        for i in range(160)
    )
    facts = replace(sin_cos, nodes=ops)
    cut, full = (show(ReportView(cold_run, [facts], full)) for full in (False, True))
    assert "relu_39 " in cut
    assert "relu_40 " not in cut
    assert "… 120 more ops; --full shows all" in cut
    assert "relu_159 " in full
    assert "--full" not in full


def test_packed_groups_are_one_function_with_two_loop_nests(show: Show, cold_run: Run, sin_cos: GraphFacts) -> None:
    """The C++ backend puts unfused groups into one function: the report must not claim two kernels."""
    kernel = replace(sin_cos.kernels[0], groups=("op0", "op1"), loop_nests=2)
    groups = tuple(GroupFact(name, "SchedulerNode", (name,), kernel=kernel.name) for name in ("op0", "op1"))
    text = show(ReportView(cold_run, [replace(sin_cos, kernels=(kernel,), groups=groups)]), 200)
    assert "cpp_fused_cos_sin_0  C++, 1 function, 2 loop nests, 1 call" in text
    assert text.index("group op0") < text.index("group op1")


def test_groups_without_kernel_are_shown(show: Show, cold_run: Run, sin_cos: GraphFacts) -> None:
    nop = GroupFact("op1", "NopKernelSchedulerNode", ("op1",))
    text = show(ReportView(cold_run, [replace(sin_cos, groups=(*sin_cos.groups, nop))]))
    assert "└── no kernel" in text
    assert "group op1  NopKernelSchedulerNode" in text


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("width", [80, 200])
def test_hostile_names_stay_text(show: Show, cold_run: Run, sin_cos: GraphFacts, hostile: str, width: int) -> None:
    node = NodeFact(FxNode(hostile, "call_function", hostile), Fate.UNKNOWN, kernels=(hostile,), reason=hostile)
    facts = replace(
        sin_cos,
        graph=replace(
            sin_cos.graph, name=hostile, artifacts=(Artifact(hostile, ArtifactState.MISSING, cause=hostile),)
        ),
        nodes=(node,),
        buffers=(replace(sin_cos.buffers[0], name=hostile, reason=hostile, evidence=Evidence.NONE),),
        groups=(GroupFact(hostile, hostile, (hostile,), (hostile,), reason=hostile),),
        kernels=(replace(sin_cos.kernels[0], name=hostile, backend=hostile),),
        conflicts=(Conflict(hostile, Evidence.NAME, hostile, Evidence.NAME, hostile),),
    )
    text = show(ReportView(replace(cold_run, path=hostile, notes=(hostile,)), [facts], full=True), width)
    assert all(char.isprintable() or char == "\n" for char in text)
    assert plain(hostile) in text.replace("\n", "") or len(hostile) > width or "\\" in plain(hostile)
    assert max(map(len, text.splitlines())) <= width


def test_no_colour_code_without_a_terminal_and_meaning_without_colour(
    show: Show, cold_run: Run, sin_cos: GraphFacts
) -> None:
    view = ReportView(cold_run, [sin_cos])
    coloured = show(view, 100, force_terminal=True, color_system="truecolor")
    bare = show(view, 100)
    assert "\x1b[" in coloured
    assert "\x1b" not in bare
    for word in ("inlined into buf0", "realized as buf0 (output)"):
        assert word in bare


# ------------------------------------------------------------------------------------------------------ fates, numbers


@pytest.mark.parametrize(
    ("change", "storage", "words"),
    [
        ({"fate": Fate.REALIZED, "buffer": "buf0"}, Storage.ALLOCATED, "realized as buf0"),
        ({"fate": Fate.REALIZED, "buffer": "buf0"}, Storage.REMOVED, "realized as buf0 (fused away)"),
        ({"fate": Fate.REALIZED, "buffer": "buf0"}, Storage.REUSED, "realized as buf0 (in the memory of buf9)"),
        (
            {"fate": Fate.REALIZED, "buffer": "buf0", "inlined_into": ("buf1",)},
            Storage.ALLOCATED,
            "realized as buf0, again inside buf1",
        ),
        ({"fate": Fate.INLINED, "inlined_into": ("buf3",)}, Storage.ALLOCATED, "inlined into buf3"),
        ({"fate": Fate.INLINED, "inlined_into": ("buf3", "buf7")}, Storage.ALLOCATED, "recomputed in buf3, buf7"),
        ({"fate": Fate.VIEW, "buffer": "buf0"}, Storage.ALLOCATED, "view of buf0"),
        ({"fate": Fate.VIEW}, Storage.ALLOCATED, "view"),
        ({"fate": Fate.FOLDED, "reason": "dead"}, Storage.ALLOCATED, "folded: dead"),
        ({"fate": Fate.UNKNOWN, "reason": "ambiguous: a, b"}, Storage.ALLOCATED, "unknown: ambiguous: a, b"),
        (
            {"fate": Fate.INLINED, "inlined_into": ("buf1",), "evidence": Evidence.NAME},
            Storage.ALLOCATED,
            "inlined into buf1 (a guess from the kernel's name)",
        ),
    ],
)
def test_fate_in_words(sin_cos: GraphFacts, change: dict[str, object], storage: Storage, words: str) -> None:
    fact = NodeFact(**{"node": FxNode("a", "call_function", "aten.a"), "evidence": Evidence.CAPTURE, **change})  # type: ignore[arg-type]
    buffer = replace(sin_cos.buffers[0], storage=storage, shares_memory_with="buf9")
    assert fate_text(fact, buffer) == words


def test_chain_of_layers_marks_what_is_not_known() -> None:
    assert chain(Summary(fx_nodes=1, scheduler_nodes=2, groups=1, kernel_calls=None)) == (
        "1 op → 2 scheduler nodes → 1 group → ? kernel calls"
    )


def test_numbers_in_words() -> None:
    assert (counted(1, "kernel"), counted(12345, "kernel"), counted(None, "kernel")) == (
        "1 kernel",
        "12,345 kernels",
        "? kernels",
    )
    assert (byte_text(999), byte_text(4000), byte_text(8_400_000), byte_text(None)) == (
        "999 bytes",
        "4.0 kB",
        "8.4 MB",
        "?",
    )
    assert listed(["a", "b", "c", "d", "e"]) == "a, b, c … 2 more"


def test_long_names_keep_both_ends() -> None:
    name = "triton_poi_fused_" + "add_" * 40 + "17"
    short = shortened(name)
    assert len(short) == 60
    assert short.startswith("triton_poi_fused_")
    assert short.endswith("add_17")


@given(st.text())
def test_plain_text_never_acts(text: str) -> None:
    assert plain(text).isprintable()
    assert plain(text) == text or not text.isprintable()


# --------------------------------------------------------------------------------------------------------------- JSON


def test_report_document_follows_the_contract(cold_run: Run, sin_cos: GraphFacts) -> None:
    document = json.loads(dumps(report_document(cold_run, [sin_cos])))
    graph = document["graphs"][0]
    assert document["schema_version"] == 1
    assert document["run"] == {
        "path": "base",
        "torch_version": "2.13.0+cpu",
        "captured": False,
        "cache_state": "cold",
        "config": {
            "torch._inductor.config.realize_reads_threshold": "0",
            "torch._inductor.config.realize_opcount_threshold": "0",
        },
        "notes": [],
    }
    assert graph["fx_nodes"][1] == {
        "name": "cos",
        "target": "aten.cos.default",
        "fate": "inlined",
        "buffer": None,
        "inlined_into": ["buf0"],
        "kernels": ["cpp_fused_cos_sin_0"],
        "source_ops": ["y"],
        "source": {"file": "/home/user/demo.py", "line": 8, "function": "model", "code": "y = torch.cos(x)"},
        "evidence": "alignment",
        "reason": None,
    }
    assert graph["buffers"][0]["size"] == [1000]
    assert graph["buffers"][0]["bytes"] == 4000
    assert graph["scheduler_nodes"] == [
        {"name": "op0", "class": "SchedulerNode", "ir_class": "ComputedBuffer", "reads": ["arg0_1"], "writes": ["buf0"]}
    ]
    assert graph["kernels"][0]["loop_nests"] == 1
    assert graph["summary"]["kernel_calls"] == 1


def test_report_document_has_every_key_even_when_nothing_is_known(cold_run: Run, sin_cos: GraphFacts) -> None:
    graph = replace(sin_cos.graph, runnable=None, artifacts=())
    buffer = replace(sin_cos.buffers[0], layout=None, bytes=None)
    facts = replace(sin_cos, graph=graph, buffers=(buffer,), summary=Summary())
    document = report_document(cold_run, [facts])["graphs"][0]
    assert document["buffers"][0]["size"] is None
    assert document["summary"] == dict.fromkeys(document["summary"])
    assert document["config"] is None


def test_symbolic_sizes_stay_text(cold_run: Run, sin_cos: GraphFacts) -> None:
    layout = replace(sin_cos.buffers[0].layout, size=("s33*s77", 16))  # type: ignore[type-var]
    facts = replace(sin_cos, buffers=(replace(sin_cos.buffers[0], layout=layout),))
    assert report_document(cold_run, [facts])["graphs"][0]["buffers"][0]["size"] == ["s33*s77", 16]


@pytest.mark.parametrize("hostile", [*HOSTILE, "\udcff"])
def test_json_carries_hostile_text_unharmed_and_harmless(cold_run: Run, sin_cos: GraphFacts, hostile: str) -> None:
    text = dumps(report_document(replace(cold_run, path=hostile), [sin_cos]))
    assert text.isascii()
    assert "\x1b" not in text
    assert json.loads(text)["run"]["path"] == hostile


# -------------------------------------------------------------------------------------------------------------- errors


def test_error_shows_place_line_caret_and_next_step(show: Show) -> None:
    error = ArtifactError(
        Location("ir_pre_fusion.txt", 12, 15), "expected a dependency", "op0.writes = [MemoryDep(", "capture it again"
    )
    assert show(ErrorView(error)).splitlines() == [
        "error: ir_pre_fusion.txt:12:15: expected a dependency",
        "    op0.writes = [MemoryDep(",
        "                  ^",
        "next: capture it again",
    ]


def test_caret_stands_under_the_column_in_long_wide_and_hostile_lines(show: Show) -> None:
    line = "x" * 500 + "\x1b[31m日本" + "HERE" + "y" * 500
    text = show(ErrorView(ArtifactError(Location("a", 1, line.index("HERE") + 1), "expected y", line)), 120)
    _, excerpt, caret = text.splitlines()
    wide = excerpt[: excerpt.index("HERE")]
    assert caret == " " * (len(wide) + 2) + "^"
    assert excerpt.strip().startswith("…x")
    assert excerpt.endswith("…")
    assert "\\x1b[31m" in excerpt


def test_error_text_is_no_markup(show: Show) -> None:
    assert show(ErrorView(UsageError("no graph '[red]x'"))) == "error: no graph '[red]x'\n"
