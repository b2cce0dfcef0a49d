"""Captured commands stay what they were; what was wrong with a run is said in one line. Nothing here needs torch."""

from __future__ import annotations

import json
import os
import time
import venv
from pathlib import Path

import pytest

from analyzer.artifacts import manifest as manifests
from analyzer.capture import (
    CaptureRequest,
    CaptureResult,
    Progress,
    capture,
    interpreter,
    module_command,
    parse_setting,
    script_command,
)
from analyzer.capture import settings as capture_settings
from analyzer.capture.environment import child_environment
from analyzer.capture.settings import TorchInfo, plan
from analyzer.capture.survey import cache_counts
from analyzer.errors import CaptureError, UsageError


@pytest.fixture
def script(tmp_path: Path):
    def write(text: str, name: str = "program.py") -> str:
        path = tmp_path / "scripts" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter without torch."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True)
    return str(folder / "bin/python")


def run(tmp_path: Path, command: tuple[str, ...], **options) -> CaptureResult:
    return capture(CaptureRequest(command, out=tmp_path / "run", cwd=tmp_path, **options))


def kinds(result: CaptureResult) -> list[str]:
    return [finding.kind for finding in result.findings]


# ------------------------------------------------------------------------------------- the command stays what it was

SHOW_SELF = """
import json, os, sys
print(json.dumps([sys.argv[1:], os.getcwd(), sys.path[0], __name__, __file__, "torch" in sys.modules]))
print("to stderr", file=sys.stderr)
"""


def test_a_script_sees_what_plain_python_shows_it(tmp_path, script, capfd):
    path = script(SHOW_SELF)
    run(tmp_path, script_command(path, ("--help", "--ablation", "x", "-")))
    out, err = capfd.readouterr()
    assert json.loads(out) == [
        ["--help", "--ablation", "x", "-"],
        str(tmp_path),
        str(Path(path).parent),
        "__main__",
        path,
        False,
    ]
    assert err == "to stderr\n"


def test_a_module_is_run_as_python_runs_it(tmp_path, script, capfd):
    script(SHOW_SELF, "module.py")
    run(tmp_path, module_command("scripts.module", ("a",)))
    arguments, cwd, first, name, *_ = json.loads(capfd.readouterr().out)
    assert (arguments, cwd, first, name) == (["a"], str(tmp_path), str(tmp_path), "__main__")


def test_sys_path_is_that_of_plain_python(tmp_path, script, capfd, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "mine"))
    run(tmp_path, script_command(script("import sys; print(*sys.path, sep='\\n')")))
    captured = capfd.readouterr().out.splitlines()
    assert captured[1] == str(tmp_path / "mine")
    assert not [entry for entry in captured if "inside" in entry]


@pytest.mark.parametrize("code", [0, 3, 77])
def test_the_exit_code_is_the_commands_own(tmp_path, script, code):
    result = run(tmp_path, script_command(script(f"raise SystemExit({code})")))
    assert result.exit_code == result.manifest.exit_code == code
    assert ("crashed" in kinds(result)) == (code != 0)


def test_standard_input_reaches_the_script(tmp_path, script, capfd):
    (tmp_path / "input").write_text("hello")
    old = os.dup(0)
    with (tmp_path / "input").open() as stream:
        os.dup2(stream.fileno(), 0)
        run(tmp_path, script_command(script("import sys; print(sys.stdin.read())")))
    os.dup2(old, 0)
    assert capfd.readouterr().out == "hello\n"


def test_any_program_can_be_captured(tmp_path, capfd):
    result = run(tmp_path, ("sh", "-c", "echo out; exit 4"))
    assert (capfd.readouterr().out, result.exit_code) == ("out\n", 4)
    assert result.manifest.command == ("sh", "-c", "echo out; exit 4")


def test_a_program_beside_the_interpreter_is_found_first(tmp_path, capfd):
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("python", "launch"):
        (folder / name).write_text("#!/bin/sh\necho mine\n")
        (folder / name).chmod(0o755)
    run(tmp_path, ("launch",), python=str(folder / "python"))
    assert capfd.readouterr().out == "mine\n"


def test_the_users_own_sitecustomize_still_runs(tmp_path, script, capfd, monkeypatch):
    (tmp_path / "site").mkdir()
    (tmp_path / "site/sitecustomize.py").write_text("print('custom', __name__)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    run(tmp_path, script_command(script("import sitecustomize; print(sitecustomize.__file__)")))
    assert capfd.readouterr().out == f"custom sitecustomize\n{tmp_path}/site/sitecustomize.py\n"


# ------------------------------------------------------------------------------------------------------- how runs end


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("import torch", "the command ended with exit code 1 before any graph was compiled"),
        ("pass", "no process of the command imported torch under the hook"),
    ],
)
def test_an_interpreter_without_torch_is_named(tmp_path, script, bare_python, capfd, body, message):
    (found,) = run(tmp_path, script_command(script(body), python=bare_python)).findings
    assert found.message == message
    assert found.hint == f"{bare_python} has no torch: choose the interpreter that has yours with --python."


def test_a_process_without_torch_is_said_not_to_be_reached(tmp_path, script):
    result = run(tmp_path, script_command(script("pass")))
    assert kinds(result) == ["not-reached"]
    assert result.findings[0].message == "no process of the command imported torch under the hook"


def test_a_crash_says_how_far_it_came(tmp_path, script, capfd):
    result = run(tmp_path, script_command(script("raise ValueError('oops')")))
    assert "ValueError: oops" in capfd.readouterr().err
    assert result.findings[0].kind == "crashed"
    assert result.findings[0].message == "the command ended with exit code 1 before any graph was compiled"


def test_a_signal_is_named(tmp_path, script):
    result = run(tmp_path, script_command(script("import os; os.kill(os.getpid(), 9)")))
    assert (result.exit_code, result.manifest.signal) == (None, "SIGKILL")
    assert result.findings[0].message == "the command was ended by SIGKILL before any graph was compiled"


SPAWN_AND_SLEEP = """
import pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
pathlib.Path("child").write_text(str(child.pid))
time.sleep(60)
"""


def alive(pid: int) -> bool:
    """Not a zombie: nobody reaps orphans in a container."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def assert_ended(pid: int) -> None:
    for _ in range(50):
        if not alive(pid):
            return
        time.sleep(0.05)
    raise AssertionError(f"{pid} is still alive")


def test_a_time_limit_ends_the_whole_group(tmp_path, script):
    began = time.monotonic()
    result = run(tmp_path, script_command(script(SPAWN_AND_SLEEP)), timeout=1.0)
    assert time.monotonic() - began < 10
    assert result.manifest.timed_out
    assert kinds(result)[0] == "timeout"
    assert result.exit_code is None
    assert_ended(int((tmp_path / "child").read_text()))


def test_ctrl_c_ends_the_command_and_keeps_the_manifest(tmp_path, script):
    def press(progress: Progress) -> None:
        if (tmp_path / "child").exists():
            raise KeyboardInterrupt

    request = CaptureRequest(script_command(script(SPAWN_AND_SLEEP)), out=tmp_path / "run", cwd=tmp_path, timeout=30)
    result = capture(request, press)
    assert kinds(result)[0] == "interrupted"
    assert (tmp_path / "run/manifest.json").exists()
    assert_ended(int((tmp_path / "child").read_text()))


def test_progress_is_reported_while_it_runs(tmp_path, script):
    seen: list[Progress] = []
    request = CaptureRequest(script_command(script("import time; time.sleep(0.5)")), out=tmp_path / "run")
    capture(request, seen.append)
    assert len(seen) >= 2
    assert [progress.graphs for progress in seen] == [0] * len(seen)
    assert seen[0].elapsed_s < seen[-1].elapsed_s


# ----------------------------------------------------------------------------------------------------- the run folder


def test_the_default_folder_is_named_after_the_script_and_fresh(tmp_path, script):
    request = CaptureRequest(script_command(script("pass", "train.py"), ("--epochs", "1")), cwd=tmp_path)
    first, second = capture(request).folder, capture(request).folder
    assert first != second
    assert first.parent == tmp_path / "inductor-audit-runs"
    assert first.name.startswith("train-")


def test_a_folder_of_somebody_else_is_not_touched(tmp_path, script):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="is not empty"):
        run(tmp_path, script_command(script("open('ran', 'w')")))
    assert not (tmp_path / "ran").exists()
    assert (tmp_path / "run/notes.txt").read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_named(tmp_path, script):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"cannot make .*/file/run: Not a directory"):
        capture(CaptureRequest(script_command(script("pass")), out=tmp_path / "file/run", cwd=tmp_path))


@pytest.mark.parametrize("extra", ["notes.txt", None])
def test_an_earlier_capture_is_replaced_unless_something_was_added(tmp_path, script, extra):
    command = script_command(script("pass"))
    run(tmp_path, command)
    if extra is None:
        assert run(tmp_path, command).manifest.exit_code == 0
    else:
        (tmp_path / "run" / extra).write_text("mine")
        with pytest.raises(UsageError, match="is not empty"):
            run(tmp_path, command)


def test_a_foreign_manifest_is_not_overwritten(tmp_path, script):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/manifest.json").write_text('{"name": "web app"}')
    with pytest.raises(UsageError, match=r"manifest\.json of something else"):
        run(tmp_path, script_command(script("pass")))


def test_only_the_manifest_and_debug_output_stay(tmp_path, script):
    run(tmp_path, script_command(script("pass")))
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["manifest.json"]


def test_the_manifest_says_what_was_done(tmp_path, script, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("SECRET_TOKEN", "hush")
    result = run(tmp_path, script_command(script("pass"), ("a b",)))
    text = (tmp_path / "run/manifest.json").read_text()
    assert manifests.parse(text, "manifest.json") == result.manifest
    assert result.manifest.command[-1] == "a b"
    assert result.manifest.cwd == str(tmp_path)
    assert result.manifest.environment["OMP_NUM_THREADS"] == "1"
    assert "hush" not in text
    assert 0 < result.manifest.duration_s < 30


# -------------------------------------------------------------------------------------------------------- environment


def test_every_cache_is_off_or_private_and_the_users_own_is_out_of_reach():
    base = {
        "TORCHINDUCTOR_CACHE_DIR": "/home/user/cache",
        "TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE": "1",
        "INDUCTOR_PROVENANCE": "0",
        "PYTHONPATH": "/mine",
        "HOME": "/home/user",
    }
    made = child_environment(base, Path("/run"), Path("/private"), Path("/run/request.json"))
    assert made["TORCH_COMPILE_DEBUG"] == "1"
    assert made["TORCH_COMPILE_DEBUG_DIR"] == "/run"
    assert made["TORCHINDUCTOR_CACHE_DIR"].startswith("/private/")
    assert made["TRITON_CACHE_DIR"].startswith("/private/")
    assert made["TORCHINDUCTOR_FX_GRAPH_CACHE"] == made["TORCHINDUCTOR_AUTOGRAD_CACHE"] == "0"
    assert "TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE" not in made
    assert "INDUCTOR_PROVENANCE" not in made
    assert made["PYTHONPATH"].endswith(":/mine")
    assert made["HOME"] == "/home/user"


def test_the_private_cache_is_deleted(tmp_path, script, capfd):
    run(tmp_path, script_command(script("import os; print(os.environ['TORCHINDUCTOR_CACHE_DIR'])")))
    assert not Path(capfd.readouterr().out.strip()).parent.exists()


def test_cache_counters_of_both_caches_are_summed():
    counters = {
        "inductor": {
            "fxgraph_cache_hit": 2,
            "fxgraph_cache_miss": 1,
            "fxgraph_cache_bypass": 4,
            "pattern_matcher_count": 9,
        },
        "aot_autograd": {"autograd_cache_hit": 1, "total": 3},
    }
    assert cache_counts(counters) == {"hits": 3, "misses": 1, "bypasses": 4}


# ----------------------------------------------------------------------------------------------- settings and requests


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("realize_reads_threshold=0", "realize_reads_threshold", "0"),
        (" cpp.simdlen = None ", "cpp.simdlen", "None"),
        ("a=[1, 2]", "a", "[1, 2]"),
        ("a='x=y'", "a", "'x=y'"),
        ("a=true", "a", "True"),
        ("max_autotune_gemm_backends=ATEN,CPP", "max_autotune_gemm_backends", "'ATEN,CPP'"),
        ("a=", None, None),
        ("=1", None, None),
        ("a", None, None),
        ("a=__import__('os')", None, None),
        ("a=" + "(" * 5000, None, None),
    ],
)
def test_settings_are_python_literals(text, key, value):
    if key is None:
        with pytest.raises(UsageError):
            parse_setting(text)
    else:
        assert parse_setting(text) == (key, value)


INDUCTOR, FUNCTORCH = "torch._inductor.config.", "torch._functorch.config."
KEYS = {
    INDUCTOR + "realize_reads_threshold",
    INDUCTOR + "realize_opcount_threshold",
    INDUCTOR + "max_fusion_size",
    INDUCTOR + "cpp.simdlen",
    FUNCTORCH + "cse",
}


@pytest.fixture
def torch_29(monkeypatch):
    monkeypatch.setattr(capture_settings, "ask_interpreter", lambda python: TorchInfo("2.9.1+cpu", frozenset(KEYS)))


def request(**options) -> CaptureRequest:
    return CaptureRequest(("true",), **options)


@pytest.mark.usefixtures("torch_29")
class TestPlan:
    def test_short_keys_get_their_module(self):
        found = plan(request(settings=(("cse", "False"), ("cpp.simdlen", "1"), (INDUCTOR + "max_fusion_size", "2"))))
        assert found.settings == (
            (FUNCTORCH + "cse", "False"),
            (INDUCTOR + "cpp.simdlen", "1"),
            (INDUCTOR + "max_fusion_size", "2"),
        )

    def test_an_unknown_key_suggests_near_ones(self):
        with pytest.raises(UsageError, match=r"torch 2\.9\.1\+cpu has no setting realize_read_threshold") as raised:
            plan(request(settings=(("realize_read_threshold", "0"),)))
        assert raised.value.hint.startswith("Did you mean realize_reads_threshold")

    def test_settings_by_hand_win_over_those_of_an_ablation(self):
        found = plan(request(ablations=("fusion",), settings=(("max_fusion_size", "2"),)))
        assert (found.settings, found.switches) == (((INDUCTOR + "max_fusion_size", "2"),), ("fusion",))

    def test_ablations_add_up(self):
        found = plan(request(ablations=("inlining", "realize-thresholds", "inlining+fusion")))
        assert found.switches == ("inlining", "fusion")
        assert dict(found.settings)[INDUCTOR + "realize_opcount_threshold"] == "0"

    def test_a_version_without_the_knob_is_told(self):
        with pytest.raises(UsageError, match=r"torch 2\.9\.1\+cpu cannot do the ablation dead-node-elimination"):
            plan(request(ablations=("dead-node-elimination",)))

    def test_an_unknown_ablation_is_told(self):
        with pytest.raises(UsageError, match="unknown ablation: inline"):
            plan(request(ablations=("inline",)))


def test_the_baseline_arm_gets_the_feature_and_not_the_ablation(monkeypatch):
    keys = frozenset(INDUCTOR + key for key in ("freezing", "max_autotune", "max_autotune_gemm_backends"))
    monkeypatch.setattr(capture_settings, "ask_interpreter", lambda python: TorchInfo("2.13.0", keys))
    base = plan(request(baseline_of=("matmul-templates",)))
    ablated = plan(request(ablations=("matmul-templates",)))
    assert dict(base.settings) == {INDUCTOR + "max_autotune": "True", INDUCTOR + "freezing": "True"}
    assert dict(ablated.settings) == {**dict(base.settings), INDUCTOR + "max_autotune_gemm_backends": "'ATEN'"}


def test_an_interpreter_without_torch_is_told_before_anything_runs(tmp_path):
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'torch'\" >&2\nexit 1\n")
    fake.chmod(0o755)
    with pytest.raises(CaptureError, match="cannot import torch: ModuleNotFoundError"):
        capture(CaptureRequest(("true",), settings=(("a", "1"),), python=str(fake), out=tmp_path / "run"))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("body", "message", "hint"),
    [
        ("sleep 60", "did not import torch within 0 minutes", "Is the machine very busy?"),
        ("true", "is no Python interpreter", "--python"),
    ],
)
def test_an_interpreter_that_does_not_answer_is_told_in_one_line(tmp_path, monkeypatch, body, message, hint):
    monkeypatch.setattr(interpreter, "_TIMEOUT_S", 0.3)
    fake = tmp_path / "python"
    fake.write_text(f"#!/bin/sh\nexec {body}\n")
    fake.chmod(0o755)
    with pytest.raises(CaptureError) as error:
        capture_settings.ask_interpreter(str(fake))
    assert str(error.value) == f"{fake} {message}"
    assert hint in str(error.value.hint)


@pytest.mark.parametrize("command", [("no-such-program-here",), ("./missing.sh",)])
def test_a_command_that_does_not_exist_is_told(tmp_path, command):
    with pytest.raises(CaptureError, match="no such program"):
        capture(CaptureRequest(command, out=tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_an_empty_command_is_told(tmp_path):
    with pytest.raises(UsageError, match="no command"):
        capture(CaptureRequest((), out=tmp_path / "run"))


def test_the_interpreter_is_asked_once(tmp_path):
    fake = tmp_path / "python"
    answer = '{"torch": "2.13.0+cpu", "keys": {"torch._inductor.config": ["max_fusion_size"]}}'
    fake.write_text(f"#!/bin/sh\necho asked >> {tmp_path}/log\necho noise\necho '{answer}'\n")
    fake.chmod(0o755)
    for _ in range(2):
        found = capture_settings.ask_interpreter(str(fake))
    assert (found.release, found.keys) == ((2, 13), {INDUCTOR + "max_fusion_size"})
    assert (tmp_path / "log").read_text() == "asked\n"
