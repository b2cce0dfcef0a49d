"""Every document follows its published schema, and the schema names every key of the document."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

import cli
from analyzer.analyze import analyze
from analyzer.contracts import check, contracts_of_run, parse
from analyzer.doctor import examine_run
from analyzer.explain import explain
from analyzer.facts import Summary
from analyzer.graph import export, to_networkx
from analyzer.lab.records import (
    Agreement,
    ArmResult,
    ArmRun,
    ArmSpec,
    ArmTime,
    Effect,
    Factorial,
    LabResult,
    Ratio,
    Role,
    Script,
    ScriptResult,
    Status,
)
from analyzer.load import load_run
from analyzer.schemas import NAMES, schema
from analyzer.verdict import Verdict
from analyzer.views.check import check_document
from analyzer.views.doctor import doctor_document
from analyzer.views.explain import explain_document
from analyzer.views.json import SCHEMA_VERSION, ablate_document, dumps, report_document

ROOT = Path(__file__).parent.parent
RUNS = ROOT / "fixtures/runs"
MLP = RUNS / "cpu-2.13/c11_mlp_train"


def closed(part: Any) -> Any:
    """The schema with no key allowed that it does not name: readers must accept new keys, writers must publish them."""
    if isinstance(part, list):
        return [closed(item) for item in part]
    if not isinstance(part, dict):
        return part
    told = {key: closed(value) for key, value in part.items()}
    return {**told, "additionalProperties": False} if "properties" in part and part.get("type") == "object" else told


def document(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    """What a command prints with `--json`."""
    cli.main([str(argument) for argument in arguments] + ["--json"])
    return json.loads(capsys.readouterr().out)


def follows(name: str, told: Any) -> None:
    Draft202012Validator(closed(schema(name))).validate(told)


@pytest.mark.parametrize("name", NAMES)
def test_schemas_are_schemas_of_the_current_version(name: str) -> None:
    published = schema(name)
    Draft202012Validator.check_schema(published)
    for variant in published.get("anyOf", [published]):
        assert variant["properties"]["schema_version"] == {"const": SCHEMA_VERSION}
        assert "schema_version" in variant["required"]


def test_every_reading_command_has_a_schema() -> None:
    with_json = {
        name
        for name, command in cli.cli.commands.items()
        if any("--json" in getattr(param, "opts", ()) for param in command.params)
    }
    assert with_json | {"export"} == set(NAMES)


def test_what_schemas_share_is_equal() -> None:
    shared: dict[str, list[Any]] = {}
    for name in NAMES:
        for part, definition in schema(name).get("$defs", {}).items():
            shared.setdefault(part, []).append(definition)
    assert len(shared["summary"]) > 2
    for part, definitions in shared.items():
        assert all(definition == definitions[0] for definition in definitions), part


def test_a_wrong_document_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    told = document(capsys, "ablations", "fusion")
    told["ablations"][0]["layer"] = "elsewhere"
    with pytest.raises(ValidationError):
        follows("ablations", told)
    told["ablations"][0]["layer"], told["unheard_of"] = "fx", 1
    with pytest.raises(ValidationError):
        follows("ablations", told)
    Draft202012Validator(schema("ablations")).validate(told)  # a reader accepts new keys


RUN_FOLDERS = sorted(
    path.relative_to(ROOT / "fixtures").as_posix()
    for pattern in ("runs/*/*", "captured/*", "doctor/*", "ablations/*/*/*")
    for path in (ROOT / "fixtures").glob(pattern)
    if path.name not in ("torch_compile_debug", "tlparse")
)


@pytest.mark.parametrize("run", RUN_FOLDERS)
def test_documents_about_every_fixture(run: str) -> None:
    path = ROOT / "fixtures" / run
    loaded = load_run(path)
    facts = [analyze(graph) for graph in loaded.graphs]
    follows("report", plain(report_document(loaded, facts)))
    follows("doctor", plain(doctor_document(examine_run(path))))
    follows("export", json.loads(export([to_networkx(graph) for graph in facts], "json")))
    for name in [buffer.name for graph in facts for buffer in graph.buffers][:1]:
        follows("explain", plain(explain_document(explain(facts, name))))
    if any(graph.groups for graph in facts):
        contracts = parse(contracts_of_run(loaded, facts), "contracts.toml")
        follows("check", plain(check_document(check(contracts, loaded, facts))))


def plain(told: Any) -> Any:
    """A document as its readers get it."""
    return json.loads(dumps(told))


def test_pairs_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    two = document(capsys, "explain", MLP, "buf0", "buf1")
    assert two["pairs"]
    follows("explain", two)


@pytest.mark.parametrize(
    ("base", "ablated", "ablation", "verdict"),
    [
        ("cpu-2.13/baseline/sincos", "cpu-2.13/realize-thresholds/sincos", "realize-thresholds", "INERT"),
        ("cpu-2.13/baseline/sincos", "cpu-2.13/inlining/sincos", "inlining", "EFFECTIVE"),
        ("cpu-2.13/baseline/softmax", "cpu-2.13/fusion/softmax", "fusion", "EFFECTIVE"),
        ("cpu-2.13/baseline/sincos", "cpu-2.13/baseline/softmax", "fusion", "CONFOUNDED"),
        ("cpu-2.13/baseline/sincos", "cpu-2.13/baseline/sincos", "inlining", "UNAPPLIED"),
    ],
)
def test_audits_and_diffs(
    base: str, ablated: str, ablation: str, verdict: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arms = [ROOT / "fixtures/ablations" / arm for arm in (base, ablated)]
    audit = document(capsys, "audit", *arms, "--ablation", ablation)
    assert audit["verdict"] == verdict
    follows("audit", audit)
    follows("diff", document(capsys, "diff", *arms))


def test_ablations(capsys: pytest.CaptureFixture[str]) -> None:
    follows("ablations", document(capsys, "ablations"))


def test_experiments() -> None:
    interval, summary = (0.9, 1.1), Summary(groups=1)
    whole = Ratio(0.002, 1.0, interval)
    run = ArmRun(
        ArmSpec("fusion", Role.ABLATION, ("fusion",), (), "baseline"), Status.FINE, Path("fusion"), None, 9.0, 2.5
    )
    time = ArmTime(whole, {"model__0": whole}, False, "noise")
    fine = ArmResult(run, Verdict.PARTIAL, "fusion", "why", (), summary, summary, time, Agreement(True, 0.0, 0.0))
    crashed = ArmResult(replace(run, status=Status.CRASHED, why="it crashed"), untimed="it crashed")
    effects = tuple(Effect(kind, ("fusion",), 0.1, interval, 0.5) for kind in ("main", "interaction", "shapley"))
    factorial = Factorial(("fusion",), Effect("total", ("fusion",), 0.1, interval), effects, "text")
    script = ScriptResult(Script("a.py", ("-n",)), (fine, crashed), interval, ("control",), factorial, ("note",))
    told = json.loads(dumps(ablate_document(LabResult((script, replace(script, factorial=None, band=None))))))
    assert len(told["arms"]) == 4
    follows("ablate", told)


def test_checks_and_diagnoses(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    contracts = tmp_path / "contracts.toml"
    contracts.write_text(
        '[[contract]]\nname = "kept"\nmax_kernel_calls = 1000\n'
        '[[contract]]\nname = "broken"\nmax_kernel_calls = 0\n'
        '[[contract]]\nname = "undecided"\nrealized = ["no_such_node"]\n',
        encoding="utf-8",
    )
    check = document(capsys, "check", contracts, MLP)
    assert (check["kept"], check["broken"], check["undecided"]) == (1, 1, 1)
    follows("check", check)
    follows("doctor", document(capsys, "doctor", RUNS / "cpu-2.13/cache_warm"))


def test_the_page_about_json_names_every_schema() -> None:
    text = (ROOT / "docs/json.md").read_text(encoding="utf-8")
    for name in NAMES:
        assert f"`{name}.json`" in text
