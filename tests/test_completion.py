"""Shell completion, in the shells themselves: what TAB offers after some words of a command line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import cli
from analyzer.completion import graph_names, item_names

ROOT = Path(__file__).parent.parent
TRAINED = ROOT / "fixtures/runs/cpu-2.13/c11_mlp_train"
CHAIN = ROOT / "fixtures/runs/cpu-2.13/c01_pointwise_chain"

BASH = """
source /dev/stdin <<< "$(inductor-audit completion bash)"
COMP_WORDS=({words})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
"$(complete -p inductor-audit | sed 's/.*-F \\([^ ]*\\) .*/\\1/')" inductor-audit
((${{#COMPREPLY[@]}})) && printf '%s\\n' "${{COMPREPLY[@]}}"
"""
ZSH = """
compdef() {{ completer=$1 }}
compadd() {{ print -rl -- $completions }}
_describe() {{ print -rl -- $completions_with_descriptions }}
eval "$(inductor-audit completion zsh)"
words=({words})
CURRENT=$#words
$completer
"""
FISH = """
inductor-audit completion fish | source
complete --do-complete {line}
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


@pytest.fixture(params=sorted(SCRIPTS))
def offered(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., list[str]]:
    """What a shell offers when TAB is pressed at the end of the last word; skips where the shell is missing."""
    shell = shutil.which(request.param)
    if shell is None or sys.platform == "win32":
        pytest.skip(f"needs {request.param}")
    command = tmp_path / "bin/inductor-audit"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT / "cli.py"}" "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    environment = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}

    def ask(*words: str) -> list[str]:
        line = " ".join(("inductor-audit", *words))
        plain = " ".join(f"'{word}'" for word in ("inductor-audit", *words))
        script = SCRIPTS[request.param].format(words=plain, line=f'"{line}"')
        without_settings = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[request.param]
        done = subprocess.run(
            [shell, *without_settings, "-c", script],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env=environment,
        )
        assert done.stderr == ""
        return [re.split("[\t:]", line)[0] for line in done.stdout.splitlines()]  # what follows describes it

    return ask


def test_commands(offered: Callable[..., list[str]]) -> None:
    assert offered("ab") == ["ablate", "ablations"]


def test_ablations(offered: Callable[..., list[str]]) -> None:
    assert offered("capture", "--ablation", "realize") == ["realize-thresholds"]


def test_names_in_a_run(offered: Callable[..., list[str]]) -> None:
    assert offered("explain", str(TRAINED), "sum") == ["sum_1", "sum_2"]


def test_graphs_of_a_run(offered: Callable[..., list[str]]) -> None:
    assert offered("report", str(TRAINED), "--graph", "model__0_f") == ["model__0_forward_1.0"]


def test_a_run_that_is_not_there(offered: Callable[..., list[str]]) -> None:
    assert offered("explain", "no/such/run", "x") == []


# ----------------------------------------------------------------------------------------------- without any shell


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_script_asks_this_tool(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", shell]) == 0
    assert "_INDUCTOR_AUDIT_COMPLETE" in capsys.readouterr().out


def answers(words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What the tool answers to bash; the last of the words is the one that is being typed."""
    monkeypatch.setenv("_INDUCTOR_AUDIT_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    with pytest.raises(SystemExit):
        cli.main([])
    return [line.removeprefix("plain,") for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("capture --ablation realize", ["realize-thresholds"]),
        ("audit --ablation realize", ["realize-thresholds"]),
        ("ablate --ablation realize", ["realize-thresholds"]),
        ("ablations realize", ["realize-thresholds"]),
        (f"export {TRAINED} --graph model__0_b", ["model__0_backward_3.1"]),
        (f"explain {CHAIN} --graph model__0_inference_0.0 co", ["cos"]),
        (f"explain {CHAIN} cos si", ["sin"]),
        (f"explain {CHAIN} cpp_", ["cpp_fused_cos_sin_0"]),
        (f"explain {CHAIN} buf", ["buf0"]),
        ("check --format g", ["github"]),
    ],
)
def test_answers(
    words: str, expected: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert answers(f"inductor-audit {words}", monkeypatch, capsys) == expected


def test_names_that_a_shell_would_act_on_are_not_offered(tmp_path: Path) -> None:
    run = Path(shutil.copytree(CHAIN, tmp_path / "run"))
    graph = next(run.rglob("model__0_inference_0.0"))
    code = graph / "fx_graph_transformed.py"
    code.write_text(code.read_text().replace("%cos", "%$(reboot)"), encoding="utf-8")
    graph.rename(graph.with_name("model__$(reboot)_0.0"))
    assert graph_names(run, "model") == []
    assert [name for name in item_names(run, "") if "reboot" in name] == []
