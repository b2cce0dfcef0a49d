"""The manual pages that `--help` prints: every command has one, and what its examples say can be done."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import cli

ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "fixtures"
COMMANDS = sorted(cli.cli.commands)
COMPILING = ("capture", "ablate")
"""Their examples would compile for minutes; the command lines are only read."""


def help_of(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert cli.main([name, "--help"]) == 0
    return capsys.readouterr().out


def examples(text: str) -> Iterator[str]:
    """The command lines of a page, without the comments behind them."""
    for line in text.splitlines():
        plain = line.partition("  #")[0].strip()
        if plain.startswith(("inductor-audit ", 'eval "$(inductor-audit ')):
            yield re.sub(r'^eval "\$\((.*)\)"$', r"\1", plain)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_whole_page(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = help_of(name, capsys)
    assert any(line.startswith(f"inductor-audit {name}") for line in examples(told.partition("Example")[2]))
    assert "Exit codes:" in told
    for param in cli.cli.commands[name].params:
        if isinstance(param, click.Option):
            assert param.help, param.name
            assert param.help.endswith("."), param.help
    assert max(map(len, told.splitlines())) <= 100


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with everything that the examples speak of: runs, scripts, an archive, an interpreter."""
    arms = FIXTURES / "ablations/cpu-2.13"
    runs = {
        "torch_compile_debug": FIXTURES / "captured/apart-2.13/torch_compile_debug",
        "base": arms / "baseline/sincos",
        "ablated": arms / "realize-thresholds/sincos",
        "good_run": arms / "baseline/softmax",
        "run": arms / "baseline/softmax",
    }
    for name, run in runs.items():
        shutil.copytree(run, tmp_path / name)
    for path in (tmp_path / "torch_compile_debug").rglob("fx_graph_*.py"):
        path.write_text(path.read_text().replace("apart.py", "model.py"))
    shutil.make_archive(str(tmp_path / "bug_report"), "zip", FIXTURES / "runs/cpu-2.13/c11_mlp_train")
    for script in ("script.py", "train.py", "a.py", "b.py"):
        (tmp_path / script).touch()
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\necho '{json.dumps({'headers': True, 'torch': '2.13.0'})}'\n")
    python.chmod(0o755)
    (tmp_path / ".config/fish/completions").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.skipif(sys.platform == "win32", reason="the examples are for a POSIX shell")
@pytest.mark.parametrize("name", COMMANDS)
def test_examples_run(name: str, workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Fine or a finding, never a failure; in their order, as one writes what the next one reads."""
    lines = list(examples(help_of(name, capsys)))
    assert lines
    for line in lines:
        command, _, file = line.partition(" > ")
        _, called, *arguments = shlex.split(command)
        if called in COMPILING:
            cli.cli.commands[called].make_context(called, arguments)
            continue
        code = cli.main([called, *arguments])
        told = capsys.readouterr()
        assert code in (cli.FINE, cli.FINDING), (line, told.err)
        if file:
            Path(file).expanduser().write_text(told.out, encoding="utf-8")


# -------------------------------------------------------------------------------------- what is printed where


READING = {
    "report": ["no/such/run"],
    "explain": ["no/such/run", "buf0"],
    "audit": ["no/such/base", "no/such/arm"],
    "diff": ["no/such/old", "no/such/new"],
    "check": ["no/such.toml", "no/such/run"],
    "ablations": ["inlinig"],
    "ablate": ["no_such_script.py", "--ablation", "inlining"],
}


@pytest.mark.parametrize("name", sorted(READING))
def test_a_failure_leaves_stdout_to_documents(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([name, *READING[name], "--json"]) == cli.FAILED
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.strip()
    assert "Traceback" not in told.err


def test_every_reading_command_is_among_them() -> None:
    """A doctor never fails: what is wrong with a run is its answer."""
    with_json = {
        name for name, command in cli.cli.commands.items() if any("--json" in param.opts for param in command.params)
    }
    assert with_json == READING.keys() | {"doctor"}
