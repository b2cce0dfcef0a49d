"""The command line as its users meet it: what is printed where, exit codes, start-up, and whose options are whose."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import cli
from analyzer.artifacts.manifest import Finding, GraphEntry, Manifest
from analyzer.capture import CaptureResult

ROOT = Path(__file__).parent.parent
RUNS = ROOT / "fixtures/runs/cpu-2.13"
POINTWISE = RUNS / "c01_pointwise_chain"
SCRIPT = str(ROOT / "fixtures/programs/sin_cos.py")
COMMANDS = ("capture", "report", "audit", "ablations")


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own, piped as in a script."""
    return subprocess.run(
        [sys.executable, str(ROOT / "cli.py"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, **environment},
    )


# ------------------------------------------------------------------------------------------------------------ start-up


@pytest.mark.parametrize("command", [(), *((command,) for command in COMMANDS)])
def test_every_command_has_help_with_an_example(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*command, "--help"]) == 0
    assert f"inductor-audit {' '.join(command)}" in capsys.readouterr().out.split("\n\n", 1)[1]


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (["--help"], {"torch", "rich", "lark", "networkx", "analyzer.load"}),
        (["ablations"], {"torch", "lark", "networkx"}),
        (["report", str(POINTWISE)], {"torch", "numpy"}),
        (["audit", str(POINTWISE), str(POINTWISE), "--ablation", "inlining"], {"torch", "numpy"}),
    ],
)
def test_heavy_modules_are_not_imported(arguments: list[str], absent: set[str]) -> None:
    script = f"import json, sys, cli; cli.main({arguments!r}); print('\\n' + json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert absent.isdisjoint(json.loads(done.stdout.splitlines()[-1]))


# -------------------------------------------------------------------------------------- whose options, what is captured


@pytest.mark.parametrize(
    ("arguments", "target", "module", "whole"),
    [
        (["train.py", "--out", "x", "--set", "a=1"], ("train.py", "--out", "x", "--set", "a=1"), None, False),
        (["--out", "base", "train.py", "-m", "--", "y"], ("train.py", "-m", "--", "y"), None, False),
        (["-m", "my.package", "--epochs", "1"], ("--epochs", "1"), "my.package", False),
        (["--no-color", "--set", "a=1", "-m", "pkg", "--", "z"], ("--", "z"), "pkg", False),
        (["--module=pkg", "--out", "x"], ("--out", "x"), "pkg", False),
        (
            ["--", "torchrun", "--nproc-per-node", "2", "a.py"],
            ("torchrun", "--nproc-per-node", "2", "a.py"),
            None,
            True,
        ),
        (["--out=base", "--", "pytest", "-q"], ("pytest", "-q"), None, True),
        (["--ablation", "fusion", "--ablation", "inlining", "a.py"], ("a.py",), None, False),
    ],
)
def test_options_of_the_script_stay_its_own(
    arguments: list[str], target: tuple[str, ...], module: str | None, whole: bool
) -> None:
    params = cli.capture.make_context("capture", list(arguments)).params
    assert (params["target"], params["module"], params["whole_command"]) == (target, module, whole)


def test_an_option_of_capture_behind_the_script_is_pointed_out(capsys: pytest.CaptureFixture[str]) -> None:
    code = cli.main(["capture", "--set", "nonsense", "train.py", "--ablation", "inlining"])
    assert code == 2
    assert "note: --ablation goes to train.py; options of capture come before it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["capture"], "Say what to run: a SCRIPT, -m MODULE, or -- COMMAND."),
        (["capture", "--ablatoin", "fusion", "a.py"], "--ablation"),
        (["capture", "--ablation", "inlinig", SCRIPT], "inlining"),
        (["capture", "--set", "realize_reads_threshold", SCRIPT], "KEY=VALUE"),
        (["capture", "no_such_script.py"], "There is no script 'no_such_script.py' here."),
        (["capture", "--timeout", "0", "a.py"], "--timeout"),
        (["reprot"], "report"),
        (["report"], "RUN"),
        (["report", "no/such/run"], "no/such/run"),
        (["report", str(POINTWISE), "--graph", "model__0_inference_9.0"], "model__0_inference_0.0"),
        (["ablations", "inlinig"], "inlining"),
    ],
)
def test_wrong_requests_end_with_2_and_the_nearest_right_one(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments) == 2
    told = capsys.readouterr()
    assert message in told.err
    assert told.out == ""


@pytest.mark.parametrize(
    ("graphs", "kinds", "code"),
    [
        (1, [], 0),
        (1, ["recorder-note"], 0),
        (1, ["setting-failed"], 1),
        (2, ["cache-hit"], 1),
        (1, ["crashed"], 2),
        (1, ["timeout"], 2),
        (0, ["compiled-nothing"], 2),
    ],
)
def test_exit_code_of_a_capture(graphs: int, kinds: list[str], code: int) -> None:
    manifest = Manifest(
        "2.13.0",
        "3.11",
        "cpu",
        ("python", "a.py"),
        "/",
        graphs=tuple(GraphEntry(f"model__{i}") for i in range(graphs)),
        findings=tuple(Finding(kind, "m") for kind in kinds),
    )
    assert cli._capture_code(CaptureResult(Path("run"), 0, manifest)) == code


# ------------------------------------------------------------------------------------------------------------- reading


def test_report_of_a_run_as_inductor_wrote_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", str(POINTWISE)]) == 0
    text = capsys.readouterr().out
    assert "2 ops → 1 scheduler node → 1 group → 1 kernel call" in text
    assert "inlined into buf0" in text
    assert "realized as buf0" in text
    assert "cpp_fused_cos_sin_0" in text


def test_json_is_one_document_and_nothing_else() -> None:
    done = run("report", "--json", str(POINTWISE))
    document = json.loads(done.stdout)
    assert done.returncode == 0
    assert [graph["name"] for graph in document["graphs"]] == ["model__0_inference_0.0"]
    assert {node["name"]: node["fate"] for node in document["graphs"][0]["fx_nodes"]}["cos"] == "inlined"


def test_one_graph_can_be_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", str(RUNS / "c11_mlp_train"), "--json", "--graph", "model__0_forward_1.0"]) == 0
    assert [graph["kind"] for graph in json.loads(capsys.readouterr().out)["graphs"]] == ["forward"]


def test_audit_of_a_run_with_itself_is_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["audit", str(POINTWISE), str(POINTWISE), "--ablation", "realize-thresholds", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["ablation"] == "realize-thresholds"
    assert document["verdict"] != "EFFECTIVE"
    assert [graph["name"] for graph in document["graphs"]] == ["model__0_inference_0.0"]


def test_ablations_are_listed_and_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["ablations"]) == 0
    assert "inlining+fusion" in capsys.readouterr().out
    assert cli.main(["ablations", "realize-thresholds"]) == 0
    assert "realize_reads_threshold = 0" in capsys.readouterr().out
    assert cli.main(["ablations", "fusion", "--json"]) == 0
    assert [entry["name"] for entry in json.loads(capsys.readouterr().out)["ablations"]] == ["fusion"]


@pytest.mark.parametrize("arguments", [["report", str(POINTWISE)], ["ablations"]])
def test_pipes_and_no_color_get_plain_text(arguments: list[str]) -> None:
    piped = run(*arguments)
    forced = run(*arguments, FORCE_COLOR="1")
    assert "\x1b" not in piped.stdout
    assert "\x1b" in forced.stdout
    assert run(*arguments, FORCE_COLOR="1", NO_COLOR="1").stdout == piped.stdout
    assert run(*arguments, "--no-color", FORCE_COLOR="1").stdout == piped.stdout


def test_a_terminal_without_unicode_gets_an_answer_too() -> None:
    done = run("report", str(POINTWISE), PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "2 ops ? 1 scheduler node" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["report", "PIPE"], 2, "expected a folder or a plain file"),
        (["doctor", "PIPE"], 1, "expected a folder or a plain file"),
        (["check", "PIPE", str(POINTWISE)], 2, "it is no plain file"),
    ],
)
def test_nobody_waits_for_a_pipe(tmp_path: Path, arguments: list[str], code: int, told: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    done = run(*(str(pipe) if argument == "PIPE" else argument for argument in arguments))
    assert done.returncode == code
    assert told in " ".join((done.stdout + done.stderr).split())


@pytest.mark.parametrize("arguments", [["report", str(RUNS / "c11_mlp_train")], ["ablations", "--json"]])
def test_a_closed_pipe_is_no_error(arguments: list[str]) -> None:
    command = [sys.executable, str(ROOT / "cli.py"), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == ""
        assert child.wait(timeout=60) == 0


def test_a_run_of_empty_files_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = tmp_path / "torch_compile_debug/run_2026_01_01_00_00_00_000000-pid_1/torchinductor/model__0_inference_0.0"
    graph.mkdir(parents=True)
    for name in ("ir_pre_fusion.txt", "output_code.py", "fx_graph_transformed.py"):
        (graph / name).touch()
    assert cli.main(["report", str(tmp_path)]) == 2
    text = capsys.readouterr().out
    assert "Empty: ir_pre_fusion.txt" in text
    assert "the fate of single ops is not known" in text


@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe junk \x1b[31m", b"PK\x03\x04 no archive", b"op0: \n" * 3])
@pytest.mark.parametrize("name", ["ir_pre_fusion.txt", "run.zip", "run.tar.gz", "trace.log"])
def test_junk_ends_in_a_message(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    done = run("report", str(tmp_path / name))
    assert done.returncode in (0, 2)
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert done.stdout or done.stderr
