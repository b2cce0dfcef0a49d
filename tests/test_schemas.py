"""Every `--json` document follows its published schema, and the schema names every key of the document."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

import cli
from analyzer.facts import Summary
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
from analyzer.schemas import NAMES, schema
from analyzer.verdict import Verdict
from analyzer.views.json import SCHEMA_VERSION, ablate_document, dumps

ROOT = Path(__file__).parent.parent
RUNS = ROOT / "fixtures/runs"
MLP = RUNS / "cpu-2.13/c11_mlp_train"
SIN_COS = ROOT / "fixtures/ablations/cpu-2.13"
ABLATION = ("baseline/sincos", "realize-thresholds/sincos")


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
    assert with_json == set(NAMES)


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


@pytest.mark.parametrize(
    "run",
    [
        "cpu-2.5/c48_combo_kernels",
        "cpu-2.9/c17_gather_index",
        "cpu-2.13/c11_mlp_train",
        "cpu-2.13/c28_mark_dynamic",
        "cpu-2.13/cache_warm",
        "cpu-2.15/c57_noop_views",
        "cuda-2.14.1-a100/combo",
    ],
)
def test_reports(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    follows("report", document(capsys, "report", RUNS / run))


def test_captured_reports(capsys: pytest.CaptureFixture[str]) -> None:
    told = document(capsys, "report", ROOT / "fixtures/captured/attention_block-2.13")
    follows("report", told)
    assert told["run"]["captured"]


def test_explanations(capsys: pytest.CaptureFixture[str]) -> None:
    one = document(capsys, "explain", MLP, "buf0")
    two = document(capsys, "explain", MLP, "buf0", "buf1")
    assert one["explanations"]
    assert two["pairs"]
    follows("explain", one)
    follows("explain", two)


def test_audits_and_diffs(capsys: pytest.CaptureFixture[str]) -> None:
    base, ablated = (SIN_COS / arm for arm in ABLATION)
    audit = document(capsys, "audit", base, ablated, "--ablation", "realize-thresholds")
    assert audit["verdict"] == "INERT"
    follows("audit", audit)
    follows("diff", document(capsys, "diff", base, ablated))
    follows("diff", document(capsys, "diff", base, SIN_COS / "inlining/sincos"))


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
