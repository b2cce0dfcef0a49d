"""The plan of an experiment: which arms, against which baselines, when a finished arm may be kept, how it is judged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from analyzer.ablations import find
from analyzer.errors import UsageError
from analyzer.lab.judging import Judge
from analyzer.lab.keys import arm_key, local_sources
from analyzer.lab.plan import paper_rows, plan_arms
from analyzer.lab.records import ArmRun, ArmSpec, Role, Script, Status
from analyzer.lab.run import ArmTask, finished
from analyzer.lab.scripts import parse_scripts
from analyzer.verdict import Verdict

FIXTURES = Path(__file__).parent.parent / "fixtures"


def against(names: list[str], factorial: bool = False) -> dict[str, str | None]:
    return {spec.name: spec.against for spec in plan_arms(names, factorial)}


def test_a_baseline_and_its_control_come_before_the_arms():
    assert against(["inlining", "fusion"]) == {
        "baseline": None,
        "control": "baseline",
        "inlining": "baseline",
        "fusion": "baseline",
    }


def test_what_is_off_by_default_has_a_baseline_that_has_it_on():
    """Freezing is off by default; templates need max_autotune as well: two needs, two baselines, one plain one."""
    arms = against(["parameter-freezing", "fusion", "matmul-templates", "epilogue-fusion"])
    assert arms["fusion"] == "baseline"
    assert arms["parameter-freezing"] == "baseline+freezing"
    assert arms["matmul-templates"] == arms["epilogue-fusion"] == "baseline+max_autotune+freezing"
    assert arms["control"] == "baseline"
    assert arms["control+max_autotune+freezing"] == "baseline+max_autotune+freezing"
    assert len(arms) == 3 + 2 + 4


def test_without_a_plain_arm_there_is_no_plain_baseline():
    assert against(["cudagraphs"]) == {
        "baseline+cudagraphs": None,
        "control": "baseline+cudagraphs",
        "cudagraphs": "baseline+cudagraphs",
    }


def test_the_papers_table_has_its_eight_rows():
    assert sorted(str(find(name).row).removeprefix("without ") for name in paper_rows()) == [
        "cudagraphs",
        "fusion",
        "fusion and inlining",
        "inlining",
        "loop/layout reordering",
        "matmul templates",
        "parameter freezing",
        "pattern matching",
    ]


def test_a_factorial_experiment_has_every_subset_once():
    specs = plan_arms(["inlining", "fusion", "parameter-freezing"], factorial=True)
    chosen = [spec.ablations for spec in specs if spec.role is Role.ABLATION]
    assert len(chosen) == len({frozenset(one) for one in chosen}) == 7
    assert {spec.against for spec in specs[1:]} == {"baseline+freezing"}
    assert all(spec.baseline_of == ("parameter-freezing",) for spec in specs)


@pytest.mark.parametrize(
    "names", [["inlining"], ["inlining", "inlining"], ["fusion", "inlining", "cse", "padding", "vectorization"]]
)
def test_too_few_or_too_many_factors(names):
    with pytest.raises(UsageError, match="2 to 4 ablations"):
        plan_arms(names, factorial=True)


def test_nothing_and_nonsense_to_ablate():
    with pytest.raises(UsageError, match="nothing to ablate"):
        plan_arms([])
    with pytest.raises(UsageError, match="unknown ablation: inlinning"):
        plan_arms(["inlinning"])


# -------------------------------------------------------------------------------------------------------------- scripts


def test_scripts_get_labels_of_their_own(tmp_path):
    (tmp_path / "sub").mkdir()
    for name in ("a.py", "sub/a.py"):
        (tmp_path / name).write_text("")
    found = parse_scripts(("a.py", "--n", "3"), ("sub/a.py --name 'b c'",), tmp_path)
    assert found == (Script("a.py", ("--n", "3"), "a"), Script("sub/a.py", ("--name", "b c"), "a-2"))


@pytest.mark.parametrize(
    ("target", "more", "message"),
    [
        ((), (), "no script to ablate"),
        (("b.py",), (), "no script 'b.py'"),
        ((), ("a.py 'b",), "cannot split"),
        ((), ("",), "empty"),
    ],
)
def test_scripts_that_are_none(tmp_path, target, more, message):
    (tmp_path / "a.py").write_text("")
    with pytest.raises(UsageError, match=message):
        parse_scripts(target, more, tmp_path)


# ----------------------------------------------------------------------------------------------------------------- keys


@pytest.fixture
def task(tmp_path: Path) -> ArmTask:
    (tmp_path / "main.py").write_text("import helper\nfrom package import deep\nimport json\n")
    (tmp_path / "helper.py").write_text("import main\n")
    (tmp_path / "package").mkdir()
    (tmp_path / "package/__init__.py").write_text("from . import beside\n")
    (tmp_path / "package/deep.py").write_text("")
    (tmp_path / "package/beside.py").write_text("")
    (tmp_path / "unrelated.py").write_text("")
    spec = ArmSpec("fusion", Role.ABLATION, ("fusion",), (), "baseline")
    return ArmTask(Script("main.py", (), "main"), spec, tmp_path / "out", tmp_path, "python")


def test_local_sources_are_what_a_script_imports_from_beside_it(task):
    names = {str(path.relative_to(task.cwd)) for path in local_sources(task.cwd / "main.py")}
    assert names == {"main.py", "helper.py", "package/__init__.py", "package/deep.py", "package/beside.py"}


def test_a_key_changes_with_all_that_makes_an_arm_and_with_nothing_else(task):
    def key(one: ArmTask = task, torch: str = "2.13.0", **environment: str) -> str:
        return arm_key(one, torch, environment)

    first = key()
    others = [
        key(torch="2.14.0"),
        key(TORCHINDUCTOR_MAX_AUTOTUNE="1"),
        key(replace(task, script=replace(task.script, arguments=("--n", "1")))),
        key(replace(task, spec=replace(task.spec, ablations=("inlining",)))),
        key(replace(task, spec=replace(task.spec, baseline_of=("parameter-freezing",)))),
        key(replace(task, settings=(("max_fusion_size", "2"),))),
        key(replace(task, python="other")),
    ]
    (task.cwd / "package/deep.py").write_text("x = 1\n")
    others.append(key())
    assert len({first, *others}) == len(others) + 1
    (task.cwd / "package/deep.py").write_text("")
    (task.cwd / "unrelated.py").write_text("x = 1\n")
    assert key(replace(task, timeout=3.0, keep_cache=True), EDITOR="vi") == first


def test_a_control_is_not_its_baseline(task):
    base = replace(task, spec=ArmSpec("baseline", Role.BASELINE))
    control = replace(task, spec=ArmSpec("control", Role.CONTROL, against="baseline"))
    assert arm_key(base, "2.13.0", {}) != arm_key(control, "2.13.0", {})


@pytest.mark.parametrize(
    ("state", "kept"),
    [
        ({"schema_version": 1, "key": "k", "status": "fine", "duration_s": 2.5}, True),
        ({"schema_version": 1, "key": "other", "status": "fine"}, False),
        ({"schema_version": 1, "key": "k", "status": "crashed"}, False),
        ({"schema_version": 1, "key": None, "status": "begun"}, False),
        ({"schema_version": 2, "key": "k", "status": "fine"}, False),
        (["k"], False),
    ],
)
def test_only_a_fine_arm_of_the_same_key_is_kept(task, state, kept):
    task = replace(task, key="k")
    task.out.mkdir(parents=True)
    (task.out / "manifest.json").write_text("{}")
    task.state(".json").parent.mkdir()
    task.state(".json").write_text(json.dumps(state))
    run = finished(task)
    assert (run is not None) == kept
    if run is not None:
        assert (run.status, run.kept, run.duration_s, run.compile_s) == (Status.FINE, True, 2.5, None)


def test_a_kept_arm_whose_folder_is_gone_is_not_kept(task):
    task = replace(task, key="k")
    task.state(".json").parent.mkdir(parents=True)
    task.state(".json").write_text(json.dumps({"schema_version": 1, "key": "k", "status": "fine"}))
    assert finished(task) is None


# --------------------------------------------------------------------------------------------------- what chance picked

FROZEN, PLAIN = (FIXTURES / "ablations/cpu-2.13" / arm / "lin_eval" for arm in ("freezing", "baseline"))


@pytest.mark.parametrize(
    ("control", "verdict", "told"),
    [
        (FROZEN, Verdict.EFFECTIVE, "the baseline once more"),
        (PLAIN, Verdict.UNDECIDED, "captured alike, the two differ, as when autotuning"),
    ],
    ids=["reproducible", "irreproducible"],
)
def test_a_verdict_that_another_capture_of_the_baseline_would_not_give_is_undecided(control, verdict, told):
    """As when autotuning takes a template in one capture and the library in the next."""
    specs = {
        ArmSpec("baseline", Role.BASELINE): FROZEN,
        ArmSpec("control", Role.CONTROL, against="baseline"): control,
        ArmSpec("parameter-freezing", Role.ABLATION, ("parameter-freezing",), (), "baseline"): PLAIN,
    }
    judge = Judge({spec.name: ArmRun(spec, Status.FINE, folder) for spec, folder in specs.items()})
    _, again, arm = (judge.result(spec) for spec in specs)
    assert told in again.why
    assert arm.verdict is verdict
    assert verdict is Verdict.EFFECTIVE or arm.why.startswith("EFFECTIVE beside baseline, ")


def test_scalar_kernels_beside_vector_kernels_have_their_cause_named():
    """Two captures of one baseline of which the busy machine kept one from vector instructions."""
    base, scalar = (FIXTURES / "ablations/cpu-2.13" / arm / "sincos" for arm in ("baseline", "vectorization"))
    specs = (ArmSpec("baseline", Role.BASELINE), ArmSpec("control", Role.CONTROL, against="baseline"))
    runs = dict(zip(specs, (base, scalar), strict=True))
    judge = Judge({spec.name: ArmRun(spec, Status.FINE, folder) for spec, folder in runs.items()})
    assert "torch's test for them fails on a very busy machine" in judge.result(specs[1]).why
    assert "autotuning" not in judge.result(specs[1]).why
