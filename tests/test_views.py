"""Views: what a person sees for facts reasoned out by hand, and that no artifact text can act on a terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

import cli
from analyzer.analyze import analyze
from analyzer.errors import ArtifactError, UsageError
from analyzer.explain import explain
from analyzer.facts import Conflict, Evidence, Fate, GraphFacts, GroupFact, NodeFact, Storage, Summary
from analyzer.load import load_run
from analyzer.model import Artifact, ArtifactState, CacheState, FxNode, Location, Problem, Run, SourceSite
from analyzer.views.console import PALETTE, make_console
from analyzer.views.console import show as show_view
from analyzer.views.error import ErrorView
from analyzer.views.explain import ExplainView
from analyzer.views.fates import fate_text
from analyzer.views.json import dumps, report_document
from analyzer.views.links import artifact_link, source_link
from analyzer.views.report import ReportView
from analyzer.views.summary import chain, fates_text, memory_text
from analyzer.views.text import byte_text, counted, listed, plain, shortened

ROOT = Path(__file__).parent.parent
Show = Callable[..., str]
HOSTILE = ("[bold]x[/bold]", "[link=https://evil]y[/link]", "\x1b[31mred", "\x9b2J", "\u202edrow", "a\nb", "n" * 300)


# ------------------------------------------------------------------------------------------------------------ report


@pytest.mark.parametrize("width", [80, 200])
def test_report_of_the_founding_example(
    show: Show, golden: Callable[[str], str], cold_run: Run, sin_cos: GraphFacts, width: int
) -> None:
    assert show(ReportView(cold_run, [sin_cos]), width) == golden(f"report_sin_cos_{width}.txt")


def test_report_without_graphs_says_so_and_what_to_do(show: Show) -> None:
    text = show(
        ReportView(Run("warm", (), "2.13.0", CacheState.WARM, notes=("2 graphs came from the FX cache",)), []), 200
    )
    assert "No compiled graph was found here." in text
    assert "Note: 2 graphs came from the FX cache" in text
    assert "next: inductor-audit doctor warm says what is missing and why; inductor-audit capture" in text


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
        "Attributed: 2 of 3 FX nodes (1 by provenance, 1 by alignment, 1 unknown); 1 of 1 buffer (1 by provenance)"
        in text
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
    assert "relu_19 " in cut
    assert "relu_20 " not in cut
    assert "… 140 more rows; --full shows all" in cut
    assert "relu_159 " in full
    assert "--full" not in full


@pytest.mark.parametrize("width", [80, 120, 200])
def test_fates_wrap_before_a_name_is_broken(show: Show, cold_run: Run, sin_cos: GraphFacts, width: int) -> None:
    """Kernels differ in the last characters of their names."""
    kernels = tuple(f"cpp_fused_add_clone_native_layer_norm_transpose_unsqueeze_view_{i}" for i in range(12, 15))
    op = FxNode("_scaled_dot_product_flash_attention_for_cpu", "call_function", "aten.add.Tensor")
    fact = NodeFact(op, Fate.INLINED, inlined_into=("buf10", "buf11", "buf12"), kernels=kernels)
    lines = show(ReportView(cold_run, [replace(sin_cos, nodes=(fact,))]), width).splitlines()
    row = next(i for i, line in enumerate(lines) if line.lstrip().startswith("_scaled"))
    assert lines[row].split()[0].endswith("for_cpu")
    assert [line.split()[-1][-4:] for line in lines[row : row + 2]] == ["_12,", "w_13"]
    assert lines[row + 2].endswith("… 1 more")
    assert max(map(len, lines)) <= width


def test_packed_groups_are_one_function_with_two_loop_nests(show: Show, cold_run: Run, sin_cos: GraphFacts) -> None:
    """The C++ backend puts unfused groups into one function: the report must not claim two kernels."""
    kernel = replace(sin_cos.kernels[0], groups=("op0", "op1"), loop_nests=2)
    groups = tuple(GroupFact(name, "SchedulerNode", (name,), kernel=kernel.name) for name in ("op0", "op1"))
    text = show(ReportView(cold_run, [replace(sin_cos, kernels=(kernel,), groups=groups)]), 200)
    assert "cpp_fused_cos_sin_0  one C++ function, 2 loop nests, 1 call" in text
    assert text.index("group op0") < text.index("group op1")


def test_groups_without_kernel_are_shown(show: Show, cold_run: Run, sin_cos: GraphFacts) -> None:
    nop = GroupFact("op1", "NopKernelSchedulerNode", ("op1",))
    text = show(ReportView(cold_run, [replace(sin_cos, groups=(*sin_cos.groups, nop))]))
    assert "└── no kernel" in text
    assert "group op1  NopKernelSchedulerNode" in text


def test_ops_that_share_a_reason_are_told_together(show: Show, cold_run: Run, sin_cos: GraphFacts) -> None:
    unknown = tuple(
        NodeFact(FxNode(name, "call_function", "aten.mul.Tensor"), Fate.UNKNOWN, reason="no IR dump") for name in "abc"
    )
    text = show(ReportView(cold_run, [replace(sin_cos, nodes=unknown)]), 200)
    assert "unknown: a, b, c: no IR dump\n" in text


def test_a_run_that_records_no_lines_has_no_column_of_them(show: Show, cold_run: Run, sin_cos: GraphFacts) -> None:
    nodes = tuple(replace(fact, node=replace(fact.node, source=None)) for fact in sin_cos.nodes)
    heads = [show(ReportView(cold_run, [replace(sin_cos, nodes=one)])) for one in (sin_cos.nodes, nodes)]
    assert ["source" in text for text in heads] == [True, False]


def test_what_is_odd_stands_before_the_tables(show: Show, cold_run: Run, sin_cos: GraphFacts) -> None:
    missing = Artifact("output_code.py", ArtifactState.MISSING, cause="the compile failed before it was written")
    text = show(ReportView(cold_run, [replace(sin_cos, graph=replace(sin_cos.graph, artifacts=(missing,)))]))
    assert text.index("Missing: output_code.py") < text.index("\n  FX node ")


def test_a_graph_of_which_little_is_left_says_not_known_and_names_the_doctor(
    show: Show, cold_run: Run, sin_cos: GraphFacts
) -> None:
    text = show(ReportView(replace(cold_run, path="my run"), [replace(sin_cos, summary=Summary(fx_nodes=2))]))
    assert "2 ops → ? scheduler nodes → ? groups → ? kernel calls\n" in text
    assert "Lowering: not known\n" in text
    assert "Memory: not known\n" in text
    assert "next: inductor-audit doctor 'my run' says what is missing and why" in text


def test_the_summary_names_what_is_recomputed_and_what_moves_most(
    show: Show, cold_run: Run, sin_cos: GraphFacts
) -> None:
    cos = replace(sin_cos.nodes[1], inlined_into=("buf0", "buf1"))
    big = replace(sin_cos.kernels[0], name="extern_kernels.mm", backend="extern", bytes_read=24_000, bytes_written=0)
    facts = replace(sin_cos, nodes=(cos, sin_cos.nodes[2]), kernels=(*sin_cos.kernels, big))
    text = show(ReportView(cold_run, [facts]), 200)
    assert "Moved most: extern_kernels.mm 24.0 kB (75 %), cpp_fused_cos_sin_0 8.0 kB (25 %)\n" in text
    assert "Recomputed: cos in 2 places\n" in text


def test_sorted_by_bytes_the_largest_kernel_and_buffer_come_first(
    show: Show, cold_run: Run, sin_cos: GraphFacts
) -> None:
    big = replace(sin_cos.kernels[0], name="extern_kernels.mm", bytes_read=24_000, groups=())
    unsized = replace(big, name="symbolic", bytes_read=None)
    facts = replace(sin_cos, kernels=(unsized, *sin_cos.kernels, big))
    plain_order, largest = (show(ReportView(cold_run, [facts], largest=first), 200) for first in (False, True))
    kernels = largest[largest.index("Kernels and the groups") :]
    assert kernels.index("extern_kernels.mm") < kernels.index("cpp_fused_cos_sin_0") < kernels.index("symbolic")
    assert largest.index("aten.sin.default") < largest.index("aten.cos.default")
    assert plain_order.index("aten.cos.default") < plain_order.index("aten.sin.default")


@pytest.mark.parametrize(("number", "detailed"), [(2, True), (4, False)])
def test_of_many_graphs_each_gets_a_line_and_details_on_demand(
    show: Show, cold_run: Run, sin_cos: GraphFacts, number: int, detailed: bool
) -> None:
    graphs = [
        replace(sin_cos, graph=replace(sin_cos.graph, name="model__0_inference_0.0", process=f"rank {rank}"))
        for rank in range(number)
    ]
    graphs[1] = replace(graphs[1], summary=replace(sin_cos.summary, recomputed=3))
    text = show(ReportView(cold_run, graphs), 100)
    assert re.search(r"model__0_inference_0.0 \(rank 0\) +2 +1 +1 +8.0 kB +-\n", text)
    assert re.search(r"model__0_inference_0.0 \(rank 1\) +2 +1 +1 +8.0 kB +3 ops recomputed\n", text)
    assert ("FX node" in text) == detailed
    assert ("--graph 'model__0_inference_0.0 (rank 0)' tells of one graph" in text.replace("\n", " ")) != detailed
    assert "FX node" in show(ReportView(cold_run, graphs, full=True))


def test_reasons_are_told_when_asked_for(show: Show, cold_run: Run, sin_cos: GraphFacts) -> None:
    silent, told = (show(ReportView(cold_run, [sin_cos], why=why), 200) for why in (False, True))
    assert "single user" not in silent
    assert "consistent with: it has a single user" in told


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


# ------------------------------------------------------------------------------------------------------- colours, links


def luminance(color: str) -> float:
    """WCAG 2, of `#rrggbb`."""
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(part * weight for part, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))


@pytest.mark.parametrize("name", PALETTE)
def test_colours_can_be_read_on_white_and_on_black(name: str) -> None:
    light = luminance(PALETTE[name])
    assert 1.05 / (light + 0.05) >= 4.5
    assert (light + 0.05) / 0.05 >= 4.5


def test_every_colour_of_a_view_is_of_the_palette(monkeypatch: pytest.MonkeyPatch) -> None:
    """A view says `bold yellow`; what reaches the terminal is the palette's shade of it."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    console = make_console()
    for style in ("yellow", "bold yellow", "dim italic"):
        color = console.get_style(style).color
        assert color is not None
        assert color.get_truecolor().hex == PALETTE[style.split()[0 if "dim" in style else -1]]


def linked_to(view: Text) -> str | None:
    console = Console(file=StringIO(), force_terminal=True, color_system="truecolor", width=300)
    console.print(view)
    found = re.search(r"\x1b]8;[^;]*;(file:[^\x1b]*)\x1b", console.file.getvalue())  # type: ignore[attr-defined]
    return found[1] if found else None


def test_a_line_of_the_program_leads_to_its_file(tmp_path: Path) -> None:
    program = tmp_path / "my model.py"
    program.write_text("x\n")
    assert linked_to(source_link("my model.py:7", SourceSite(str(program), 7))) == f"{program.as_uri()}#7"


@pytest.mark.parametrize(
    "file",
    ["/no/such/model.py", "model.py", "/etc", "//host/share/x.py", r"\\host\share\x.py", "/tmp/a\0b", "", "\x1b]8;;x"],
)
def test_a_file_that_is_not_there_is_no_link(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text("x\n")  # a relative name in an artifact is relative to somewhere else
    assert linked_to(source_link("model.py:7", SourceSite(file, 7))) is None


def test_a_link_holds_no_character_that_could_end_it(tmp_path: Path) -> None:
    odd = tmp_path / "a\x1b\\b\x07.py"
    odd.write_text("x\n")
    address = linked_to(source_link("here", SourceSite(str(odd), 1)))
    assert address is not None
    assert address.isprintable()
    assert address.isascii()


def test_an_artifact_is_found_from_here_and_not_inside_an_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run").mkdir()
    dump = tmp_path / "run/output_code.py"
    dump.write_text("x\n")
    monkeypatch.chdir(tmp_path)
    assert linked_to(artifact_link("x", Location("run/output_code.py", 3))) == f"{dump.as_uri()}#3"
    assert linked_to(artifact_link("x", Location("run.zip/output_code.py", 3))) is None


def test_an_explanation_leads_to_its_places(show: Show) -> None:
    run = ROOT / "fixtures/captured/apart-2.13"
    view = ExplainView(explain([analyze(graph) for graph in load_run(run).graphs], "buf1"))
    text = show(view, force_terminal=True, color_system="truecolor")
    (dump,) = run.glob("**/ir_pre_fusion.txt")
    assert f";{dump.as_uri()}#39" in text
    assert "ir_pre_fusion.txt:39" in text


@pytest.mark.parametrize(
    ("summary", "words"),
    [
        (Summary(2, 1, 1, 0, 0, 0, 0), "1 realized, 1 inlined, 0 recomputed"),
        (Summary(9, 4, 3, 2, 1, 2, 1), "4 realized, 3 inlined, 2 recomputed, 1 view, 2 folded, 1 unknown"),
        (Summary(9, unknown=9), "? realized, ? inlined, ? recomputed, ? views, ? folded, 9 unknown"),
        (Summary(9), "not known"),
    ],
)
def test_fates_are_counted_and_what_never_happened_is_left_out(summary: Summary, words: str) -> None:
    assert fates_text(summary) == words


def test_links_and_colours_are_for_terminals(show: Show, cold_run: Run, sin_cos: GraphFacts) -> None:
    """Piped text has none, nor has text without colours on a terminal."""
    site = SourceSite(__file__, 3)
    node = replace(sin_cos.nodes[1], node=replace(sin_cos.nodes[1].node, source=site))
    view = ReportView(cold_run, [replace(sin_cos, nodes=(node,))])
    assert f"{Path(__file__).as_uri()}#3" in show(view, force_terminal=True, color_system="truecolor")
    assert "\x1b" not in show(view)
    assert "\x1b" not in show(view, force_terminal=True, color_system=None)


# --------------------------------------------------------------------------------------------------------------- pager


def test_a_pager_gets_colours_and_no_links() -> None:
    console, pages = Console(file=StringIO(), force_terminal=True, color_system="truecolor"), list[str]()
    show_view(console, Text("red", style="red link file:///x"), pages.append)
    assert pages == ["\x1b[31mred\x1b[0m\n"]
    assert console.file.getvalue() == ""  # type: ignore[attr-defined]


def test_a_pager_gets_no_colours_when_none_are_wanted() -> None:
    pages: list[str] = []
    plain_terminal = Console(file=StringIO(), force_terminal=True, color_system=None)
    show_view(plain_terminal, Text("red", style="red"), pages.append)
    assert pages == ["red\n"]


def test_piped_output_has_no_pager() -> None:
    console, pages = Console(file=StringIO()), list[str]()
    show_view(console, Text("red", style="red"), pages.append)
    assert (pages, console.file.getvalue()) == ([], "red\n")  # type: ignore[attr-defined]


@pytest.mark.parametrize("asked", [True, False])
def test_the_pager_is_the_users_and_only_when_asked_for(monkeypatch: pytest.MonkeyPatch, asked: bool) -> None:
    seen: list[str] = []
    monkeypatch.setattr(click, "echo_via_pager", seen.append)
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    assert cli.main(["ablations", "fusion", *(["--pager"] if asked else [])]) == 0
    assert [("one scheduler node per group" in text) for text in seen] == ([True] if asked else [])


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


def test_memory_of_symbolic_sizes_is_not_known_and_says_why(sin_cos: GraphFacts) -> None:
    layout = replace(sin_cos.buffers[0].layout, size=("s33", 16))  # type: ignore[type-var]
    facts = replace(sin_cos, buffers=(replace(sin_cos.buffers[0], layout=layout),), summary=Summary(realized=1))
    assert memory_text(facts) == "not known: sizes are symbolic"
    assert memory_text(replace(facts, buffers=())) == "not known"


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
