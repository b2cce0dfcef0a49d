"""Contracts: what is kept, broken or undecidable on facts reasoned out by hand, and what mistakes in a file say."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cli
from analyzer.contracts import KINDS, ContractReport, Outcome, check, contracts_of_run, parse
from analyzer.contracts.write import quoted
from analyzer.errors import ArtifactError, UsageError
from analyzer.facts import Fate, GraphFacts, NodeFact, Storage, Summary
from analyzer.load import load_run
from analyzer.model import CacheState, FxNode, Run, SourceSite
from analyzer.views.check import CheckView, check_document, github_lines

ROOT = Path(__file__).parent.parent
RUNS = ROOT / "fixtures/runs"
GUARD_CI = ROOT / "docs/guard-ci.md"
SOFTMAX = RUNS / "cpu-2.15/c03_softmax"
KEPT, BROKEN, UNDECIDED = Outcome.KEPT, Outcome.BROKEN, Outcome.UNDECIDED
SINGLE_USER = ", in kernel cpp_fused_cos_sin_0: consistent with: it has a single user"
OWN_LIMITS = (
    ", in kernel cpp_fused_cos_sin_0: consistent with: the run sets limits of its own (realize_reads_threshold = 0, "
    "realize_opcount_threshold = 0)"
)


def contract(promise: str, graph: str = "*") -> str:
    return f'[[contract]]\nname = "the promise"\ngraph = "{graph}"\n{promise}\n'


def judged(promise: str, facts: GraphFacts, run: Run | None = None) -> tuple[Outcome, str]:
    """The outcome of one promise, and its first telling reason."""
    report = check(parse(contract(promise), "c.toml"), run or Run("base", (facts.graph,)), [facts])
    (result,) = report.results
    return result.outcome, result.clauses[0].telling[0].reason


# ----------------------------------------------------------------------------------------- promises, by hand-made facts


@pytest.mark.parametrize(
    ("promise", "outcome", "reason"),
    [
        ('fused = ["cos", "sin"]', KEPT, "all in op0"),
        ('fused = "all"', KEPT, "all in op0"),
        ('fused = "demo.py:9"', KEPT, "all in op0"),
        ('apart = ["cos", "sin"]', BROKEN, "cos and sin are both in op0"),
        ('realized = ["sin"]', KEPT, "sin is realized as buf0"),
        ('realized = ["aten.cos"]', BROKEN, f"cos is inlined into buf0{SINGLE_USER}"),
        ('never_realized = ["demo.py:8"]', KEPT, "cos is inlined into buf0"),
        ('never_realized = ["s?n"]', BROKEN, f"sin is realized as buf0{OWN_LIMITS}"),
        ('never_stored = ["cos"]', KEPT, "cos is inlined into buf0"),
        ('never_stored = ["sin"]', BROKEN, f"sin is kept in buf0 (output){OWN_LIMITS}"),
        ('not_recomputed = "all"', KEPT, "cos is computed in buf0"),
        ('attributed = "all"', KEPT, "cos is inlined into buf0"),
        ('kernel_computes = { "cpp_fused_*" = ["cos"] }', KEPT, "cos is computed in cpp_fused_cos_sin_0"),
        (
            'kernel_computes = { "triton_*" = ["cos"] }',
            BROKEN,
            "cos is computed in cpp_fused_cos_sin_0, not in triton_*",
        ),
        ('never_backend = ["extern", "fallback"]', KEPT, "no extern or fallback kernel"),
        ('never_backend = "cpp"', BROKEN, "cpp_fused_cos_sin_0 (cpp)"),
        ("max_kernel_calls = 1", KEPT, "kernel calls: 1, at most 1 promised"),
        ("max_kernel_calls = 0", BROKEN, "kernel calls: 1, at most 0 promised"),
        ("max_bytes = 8000", KEPT, "bytes moved: 8,000, at most 8,000 promised"),
        ('max_bytes = "7.9 kB"', BROKEN, "bytes moved: 8,000, at most 7,900 promised"),
        ('max_allocated = "4 KiB"', KEPT, "bytes allocated: 4,000, at most 4,096 promised"),
        ("max_graphs = 1", KEPT, "graphs: 1, at most 1 promised"),
    ],
)
def test_promises_about_the_founding_example(sin_cos: GraphFacts, promise: str, outcome: Outcome, reason: str) -> None:
    assert judged(promise, sin_cos) == (outcome, reason)


def with_node(facts: GraphFacts, name: str, **changes: object) -> GraphFacts:
    return replace(facts, nodes=tuple(replace(n, **changes) if n.name == name else n for n in facts.nodes))


@pytest.mark.parametrize("kind", ["realized", "never_realized", "never_stored", "not_recomputed", "fused", "apart"])
def test_an_unknown_fate_decides_nothing(sin_cos: GraphFacts, kind: str) -> None:
    unknown = with_node(sin_cos, "cos", fate=Fate.UNKNOWN, inlined_into=(), reason="ambiguous: buf0, buf1")
    outcome, reason = judged(f'{kind} = ["cos", "sin"]' if kind in ("fused", "apart") else f'{kind} = ["cos"]', unknown)
    assert outcome == UNDECIDED
    assert "cos" in reason
    assert "ambiguous: buf0, buf1" in reason


def test_an_unknown_fate_breaks_the_promise_that_all_is_known(sin_cos: GraphFacts) -> None:
    unknown = with_node(sin_cos, "cos", fate=Fate.UNKNOWN, reason="ambiguous: buf0, buf1")
    assert judged('attributed = "all"', unknown) == (
        BROKEN,
        "the fate of cos is not known: ambiguous: buf0, buf1",
    )


def test_a_value_in_two_places_is_recomputed(sin_cos: GraphFacts) -> None:
    twice = with_node(sin_cos, "cos", inlined_into=("buf0", "buf1"))
    assert judged('not_recomputed = ["cos"]', twice) == (BROKEN, f"cos is computed in buf0 and in buf1{SINGLE_USER}")


@pytest.mark.parametrize(
    ("storage", "outcome"),
    [(Storage.REMOVED, KEPT), (Storage.ALLOCATED, BROKEN), (Storage.REUSED, BROKEN), (Storage.UNKNOWN, UNDECIDED)],
)
def test_realized_is_not_stored(sin_cos: GraphFacts, storage: Storage, outcome: Outcome) -> None:
    facts = replace(sin_cos, buffers=(replace(sin_cos.buffers[0], storage=storage),))
    assert judged('never_stored = ["sin"]', facts)[0] == outcome


def test_two_groups_are_not_fused_even_when_a_third_is_unknown(sin_cos: GraphFacts) -> None:
    buffer = sin_cos.buffers[0]
    lost = NodeFact(FxNode("exp", "call_function", "aten.exp.default"), Fate.UNKNOWN, reason="lost")
    split = with_node(sin_cos, "cos", fate=Fate.REALIZED, buffer="buf1", inlined_into=())
    split = replace(split, buffers=(buffer, replace(buffer, name="buf1", group="op1")), nodes=(*split.nodes, lost))
    outcome, reason = judged('fused = ["exp", "cos", "sin"]', split)
    assert (outcome, reason) == (BROKEN, "cos is computed in op1, sin is computed in op0")
    assert judged('apart = ["cos", "sin"]', split)[0] == KEPT


def test_a_group_that_recomputes_a_value_counts(sin_cos: GraphFacts) -> None:
    """cos is inlined into two buffers of two groups; one of them is the group of sin: that one computes both."""
    buffer = sin_cos.buffers[0]
    facts = replace(
        with_node(sin_cos, "cos", inlined_into=("buf9", "buf0")),
        buffers=(buffer, replace(buffer, name="buf9", group="op9")),
    )
    assert judged('fused = ["cos", "sin"]', facts)[0] == KEPT


def test_views_take_no_part_in_fusion_unless_they_are_all(sin_cos: GraphFacts) -> None:
    view = NodeFact(
        FxNode("view", "call_function", "aten.view.default", source=SourceSite("/home/user/demo.py", 8)), Fate.VIEW
    )
    facts = replace(sin_cos, nodes=(*sin_cos.nodes, view))
    assert judged('fused = ["demo.py:8", "sin"]', facts)[0] == KEPT
    assert judged('fused = ["view"]', facts) == (
        UNDECIDED,
        "all of these items are views or folded: no group computes them",
    )


def test_numbers_that_are_missing_decide_nothing(sin_cos: GraphFacts) -> None:
    outcome, reason = judged("max_kernel_calls = 3", replace(sin_cos, summary=Summary()))
    assert (outcome, reason[:39]) == (UNDECIDED, "the number of kernel calls is not known")


@pytest.mark.parametrize(
    ("state", "outcome"),
    [(CacheState.COLD, KEPT), (CacheState.WARM, BROKEN), (CacheState.MIXED, BROKEN), (CacheState.UNKNOWN, UNDECIDED)],
)
def test_cache_states(sin_cos: GraphFacts, state: CacheState, outcome: Outcome) -> None:
    assert judged("cold_cache = true", sin_cos, Run("base", (sin_cos.graph,), cache_state=state))[0] == outcome


def test_without_a_trace_log_nobody_knows_of_graph_breaks(sin_cos: GraphFacts) -> None:
    assert judged("no_graph_breaks = true", sin_cos)[0] == UNDECIDED
    assert judged("no_recompiles = true", sin_cos)[0] == UNDECIDED


def test_names_that_mean_nothing_are_told_with_their_place_and_near_names(sin_cos: GraphFacts) -> None:
    text = '[[contract]]\nname = "x"\nnever_realized = [\n    "sin",\n    "cosh",\n]\n'
    report = check(parse(text, "c.toml"), Run("base", (sin_cos.graph,)), [sin_cos])
    first = report.results[0].clauses[0].judgements[0]
    assert first.outcome == UNDECIDED
    assert first.reason == "nothing is named 'cosh' in model__0_inference_0.0; near: cos"
    assert str(first.place) == "c.toml:5:6"


@pytest.mark.parametrize(
    ("item", "near"), [("aten.coss", "aten.cos"), ("demo.py:10", "demo.py:9, demo.py:8"), ("other.py:3", "demo.py:8")]
)
def test_near_names_are_of_the_same_sort(sin_cos: GraphFacts, item: str, near: str) -> None:
    assert f"; near: {near}" in judged(f'realized = ["{item}"]', sin_cos)[1]


def test_a_graph_pattern_that_fits_none_decides_nothing(sin_cos: GraphFacts) -> None:
    report = check(parse(contract("max_groups = 1", "*backward*"), "c.toml"), Run("b", (sin_cos.graph,)), [sin_cos])
    judgement = report.results[0].clauses[0].judgements[0]
    assert judgement.reason == "no graph is named '*backward*'; there are model__0_inference_0.0"
    assert report.outcome == UNDECIDED


@pytest.mark.parametrize("promise", ["max_graphs = 9", "max_groups = 9", 'fused = "all"', 'attributed = "all"'])
def test_what_matches_nothing_is_not_kept(sin_cos: GraphFacts, promise: str) -> None:
    run = Run("base", (sin_cos.graph,))
    assert check(parse(contract(promise, "*backward*"), "c.toml"), run, [sin_cos]).outcome == UNDECIDED
    assert check(parse(contract(promise), "c.toml"), Run("base", ())).outcome == UNDECIDED


def test_the_caches_of_a_run_need_no_graph_that_fits(sin_cos: GraphFacts) -> None:
    run = Run("base", (sin_cos.graph,), cache_state=CacheState.COLD)
    assert check(parse(contract("cold_cache = true", "*backward*"), "c.toml"), run, [sin_cos]).outcome == KEPT
    assert check(parse(contract("cold_cache = true"), "c.toml"), replace(run, graphs=())).outcome == UNDECIDED


def test_a_contract_is_as_bad_as_its_worst_promise(sin_cos: GraphFacts) -> None:
    report = check(
        parse(contract('max_groups = 1\nfused = ["nope"]\nmax_kernel_calls = 0'), "c.toml"),
        Run("base", (sin_cos.graph,)),
        [sin_cos],
    )
    assert [clause.outcome for clause in report.results[0].clauses] == [KEPT, UNDECIDED, BROKEN]
    assert report.results[0].outcome == BROKEN


# -------------------------------------------------------------------------------------------- real runs


def test_graph_breaks_and_recompiles_of_real_logs() -> None:
    text = contract("no_graph_breaks = true\nno_recompiles = true")
    for name, broken in (("graph_break", "no_graph_breaks"), ("recompile", "no_recompiles")):
        path = ROOT / "fixtures/doctor" / name
        (result,) = check(parse(text, "c.toml"), load_run(path)).results
        assert {clause.clause.kind for clause in result.clauses if clause.outcome == BROKEN} == {broken}
        assert {clause.outcome for clause in result.clauses} == {KEPT, BROKEN}


def test_a_graph_break_is_told_at_its_line_of_the_program() -> None:
    path = ROOT / "fixtures/doctor/graph_break"
    report = check(parse(contract("no_graph_breaks = true"), "c.toml"), load_run(path))
    (judgement,) = report.results[0].clauses[0].judgements
    assert (judgement.place.file, judgement.place.line) == ("/home/user/work/silent_cases.py", 40)
    assert "torch._dynamo.graph_break()" in judgement.reason


def test_softmax_by_target_and_by_line(tmp_path: Path) -> None:
    """One promise three ways; the two softmaxes of the program are two groups."""
    run = load_run(SOFTMAX)
    whole = contract('fused = ["exp", "sum_1", "div"]\nnever_stored = ["exp_1"]') + contract('fused = ["aten.exp"]')
    first, second = check(parse(whole, "c.toml"), run).results
    assert first.outcome == KEPT
    assert second.outcome == BROKEN
    assert "exp_1 is computed in" in second.clauses[0].telling[0].reason


def test_a_run_without_dumps_is_undecided_throughout() -> None:
    warm = load_run(RUNS / "cpu-2.13/cache_warm")
    for promise in ('fused = "all"', 'realized = "all"', "max_groups = 9"):
        assert check(parse(contract(promise), "c.toml"), warm).outcome == UNDECIDED, promise


@pytest.mark.parametrize(
    "path", ["cpu-2.13/c11_mlp_train", "cpu-2.5/c11_mlp_train", "cpu-2.15/c03_softmax", "cuda-2.14.1-a100/combo"]
)
def test_what_init_writes_is_kept_by_its_run(path: str) -> None:
    run = load_run(RUNS / path)
    text = contracts_of_run(run)
    report = check(parse(text, "c.toml"), run)
    assert len(report.results) > 3
    assert {result.outcome for result in report.results} == {KEPT}
    assert "max_kernel_calls = " in text


def test_contracts_of_a_baseline_are_broken_by_an_ablation() -> None:
    """Fusion off: the group of the baseline's contract falls apart, at the lines that init wrote."""
    base = load_run(ROOT / "fixtures/ablations/cpu-2.13/baseline/softmax")
    fusion = load_run(ROOT / "fixtures/ablations/cpu-2.13/fusion/softmax")
    report = check(parse(contracts_of_run(base), "c.toml"), fusion)
    broken = {clause.clause.kind for result in report.results for clause in result.clauses if clause.outcome == BROKEN}
    assert {"fused", "max_groups"} <= broken


def test_init_of_an_unreadable_run_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing can be promised"):
        contracts_of_run(Run("nothing", ()))


# -------------------------------------------------------------------------------------------- mistakes in the file


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("[[contract]]\nname = \n", 2, 8, "expected TOML"),
        ("", 1, 1, "expected at least one [[contract]]"),
        ("[contract]\n", 1, 1, "expected at least one [[contract]]"),
        ('x = 1\n[[contract]]\nname = "a"\nmax_groups = 1\n', 1, 1, "found 'x'"),
        ("\n[[contract]]\nmax_groups = 1\n", 2, 1, "expected a name in this contract"),
        ('[[contract]]\nname = "a"\n', 1, 1, "expected a promise in the contract 'a'"),
        ('[[contract]]\nname = "a"\n  fuse = ["x"]\n', 3, 3, "there is no promise 'fuse'"),
        ('[[contract]]\nname = "a"\nfused = []\n', 3, 1, "expected a list of items"),
        ('[[contract]]\nname = "a"\nmax_groups = -1\n', 3, 1, "expected a whole number for max_groups, found -1"),
        ('[[contract]]\nname = "a"\nmax_groups = true\n', 3, 1, "expected a whole number"),
        ('[[contract]]\nname = "a"\nmax_bytes = "12 parsecs"\n', 3, 1, "expected a size"),
        ('[[contract]]\nname = "a"\nno_recompiles = false\n', 3, 1, "expected true for no_recompiles"),
        ('[[contract]]\nname = "a"\nnever_backend = ["gpu"]\n', 3, 1, "expected a list of backends"),
        ('[[contract]]\nname = "a"\nkernel_computes = ["x"]\n', 3, 1, "expected a table of kernel names"),
        ('[[contract]]\nname = "a"\nmax_groups = 1\n[[contract]]\nname = "b"\nfused = [1]\n', 6, 1, "expected a list"),
    ],
)
def test_mistakes_are_answered_at_their_place(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(ArtifactError) as raised:
        parse(text, "c.toml")
    found = raised.value
    assert message in found.message
    assert (found.location.file, found.location.line) == ("c.toml", line)
    assert "TOML" in message or found.location.column == column


@pytest.mark.parametrize(
    ("text", "line", "near"),
    [
        ('[[contract]]\nname = "a"\nmax_kernels = 3\n', 3, "near names: max_kernel_calls"),
        ('[[contract]]\nnmae = "a"\nmax_groups = 3\n', 2, "near names: name"),
        ('[[contract]]\nname = "a"\ngrahp = "*"\n', 3, "near names: graph"),
    ],
)
def test_a_misspelt_key_gets_the_near_ones(text: str, line: int, near: str) -> None:
    with pytest.raises(ArtifactError) as raised:
        parse(text, "c.toml")
    assert (raised.value.hint or "").startswith(near)
    assert raised.value.location.line == line


def test_deep_nesting_and_size_end_in_an_error() -> None:
    for text in ("x = " + "[" * 100_000, "#" * 1_100_000):
        with pytest.raises(ArtifactError):
            parse(text, "c.toml")


@given(st.text(max_size=200))
def test_any_text_is_contracts_or_an_error_with_a_place(text: str) -> None:
    try:
        contracts = parse(text, "c.toml")
    except ArtifactError as error:
        line = error.location.line
    else:
        line = len(contracts)
    assert 1 <= line <= text.count("\n") + 2


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_quoted_text_reads_back(text: str) -> None:
    told = parse(f"[[contract]]\nname = {quoted(text)}\nmax_groups = 1\n", "c.toml")
    assert told[0].name == text


# ---------------------------------------------------------------------------------------------- views and command line


def report_of_three(facts: GraphFacts) -> ContractReport:
    text = (
        '[[contract]]\nname = "one kernel"\nmax_kernel_calls = 1\n\n'
        '[[contract]]\nname = "cos has a buffer"\nrealized = ["cos"]\n\n'
        '[[contract]]\nname = "[bold]exp[/bold]: 100%, never\\u001b"\nnever_realized = ["exp"]\n'
    )
    return check(parse(text, "contracts.toml"), Run("base", (facts.graph,)), [facts])


def test_the_view_tells_only_what_is_not_kept(
    show: Callable[..., str], golden: Callable[[str], str], sin_cos: GraphFacts
) -> None:
    assert show(CheckView(report_of_three(sin_cos)), 80) == golden("check_80.txt")


def test_github_annotations_are_escaped(sin_cos: GraphFacts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "contracts.toml").touch()
    broken, undecided, counts = github_lines(report_of_three(sin_cos))
    assert broken == (
        "::error file=contracts.toml,line=5,col=1,title=BROKEN%3A cos has a buffer"
        f"::realized: model__0_inference_0.0: cos is inlined into buf0{SINGLE_USER}"
    )
    assert undecided.startswith(
        "::warning file=contracts.toml,line=11,col=20,"
        "title=COULD NOT DECIDE%3A [bold]exp[/bold]%3A 100%25%2C never\\x1b::"
    )
    assert counts == "1 kept, 1 broken, 1 could not be decided"


def test_an_annotation_stays_on_one_line(sin_cos: GraphFacts) -> None:
    """A name with a line break could otherwise begin a workflow command of its own."""
    name = "a\\n::error::b%0A\\r,c:d"
    text = f'[[contract]]\nname = "{name}"\nfused = ["x\\n::set-output name=y::z"]\n'
    report = check(parse(text, "c,d%.toml"), Run("base", (sin_cos.graph,)), [sin_cos])
    annotation, counts = github_lines(report)
    properties, _, message = annotation.removeprefix("::warning ").partition("::")
    assert (
        properties == "file=c%2Cd%25.toml,line=1,col=1,title=COULD NOT DECIDE%3A a%0A%3A%3Aerror%3A%3Ab%250A%0D%2Cc%3Ad"
    )
    assert "\n" not in message
    assert "\r" not in message
    assert counts == "0 kept, 0 broken, 1 could not be decided"


def test_github_annotations_point_into_the_program_where_it_is_checked_out(
    sin_cos: GraphFacts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/demo.py").touch()
    monkeypatch.chdir(tmp_path)
    node = next(fact.node for fact in sin_cos.nodes if fact.name == "cos")
    here = replace(node, source=SourceSite(str(tmp_path / "src/demo.py"), 8))
    lines = list(github_lines(report_of_three(with_node(sin_cos, "cos", node=here))))
    assert lines[0].startswith("::error file=src/demo.py,line=8,")


def test_json_has_every_judgement(sin_cos: GraphFacts) -> None:
    document = check_document(report_of_three(sin_cos))
    assert (document["outcome"], document["kept"], document["broken"], document["undecided"]) == ("broken", 1, 1, 1)
    assert [entry["outcome"] for entry in document["contracts"]] == ["kept", "broken", "undecided"]
    judgement = document["contracts"][1]["clauses"][0]["judgements"][0]
    assert (judgement["file"], judgement["line"]) == ("/home/user/demo.py", 8)
    json.dumps(document)


@pytest.mark.parametrize(
    ("promise", "code"), [("max_kernel_calls = 9", 0), ("max_kernel_calls = 0", 1), ('fused = ["nope"]', 2)]
)
def test_exit_codes(promise: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.toml").write_text(contract(promise), encoding="utf-8")
    assert cli.main(["check", str(tmp_path / "c.toml"), str(SOFTMAX), "--json"]) == code
    assert json.loads(capsys.readouterr().out)["schema_version"] == 1


def test_init_then_check_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "--init", str(SOFTMAX)]) == 0
    (tmp_path / "c.toml").write_text(capsys.readouterr().out, encoding="utf-8")
    assert cli.main(["check", str(tmp_path / "c.toml"), str(SOFTMAX)]) == 0
    assert capsys.readouterr().out.endswith(" kept, 0 broken\n")


@pytest.mark.parametrize("option", [["--json"], ["--format", "github"]])
def test_init_prints_toml_alone(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "--init", str(SOFTMAX), *option]) == 2
    told = capsys.readouterr()
    assert (told.out, "--init prints a contract file" in told.err) == ("", True)


def test_a_missing_file_and_a_missing_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", str(tmp_path / "none.toml"), str(SOFTMAX)]) == 2
    assert "none.toml" in capsys.readouterr().err.replace("\n", "")
    assert cli.main(["check", str(SOFTMAX)]) == 2
    assert "CONTRACTS.toml and RUN" in capsys.readouterr().err


def test_the_page_about_ci_shows_the_contracts_that_it_checks() -> None:
    (shown,) = re.findall(r"^```toml\n(.*?)^```$", GUARD_CI.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert shown == (GUARD_CI.parent / "examples/contracts.toml").read_text(encoding="utf-8")


def test_the_workflow_calls_commands_that_exist() -> None:
    (workflow,) = re.findall(r"^```yaml\n(.*?)^```$", GUARD_CI.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    commands = re.findall(r"inductor-audit ((?:capture|check|report|doctor) .*)", workflow)
    assert len(commands) == 4
    for command in commands:
        name, *arguments = command.split()
        cli.cli.commands[name].make_context(name, arguments)


def test_the_help_names_every_promise(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["check", "--help"])
    text = capsys.readouterr().out
    assert [kind.name for kind in KINDS if kind.name not in text] == []
