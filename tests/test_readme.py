"""The README's console examples are what the tool prints: they are run in order, in one folder.

A block of Python begins with a comment that names its file.

`python -m tests.test_readme` writes the present output into the README.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import cli

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
_BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_VARIES = (
    (r"run_\d{4}[\d_]*-pid_\d+", "run_…"),
    (r"\b\d+\.\d s\b", "… s"),
    (r"\.(py|txt):\d+", r".\1:…"),
    (r"\b\d+ lines\b", "… lines"),
    (r"(\btorch \d+\.\d+\.\d+)\+\w+", r"\1"),
)


def commands(body: str) -> list[str]:
    return [line[2:] for line in body.splitlines() if line.startswith("$ ")]


def output(command: str, folder: Path) -> str:
    """What a command prints, 80 columns wide and piped."""
    program, *arguments = shlex.split(command)
    assert program == "inductor-audit"
    done = subprocess.run(
        [sys.executable, str(ROOT / "cli.py"), *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=1800,
        env={**os.environ, "COLUMNS": "80"},
    )
    assert done.returncode in (0, 1), command
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def rerun(text: str, folder: Path) -> str:
    """The README's text with the present output of every command in it."""

    def fresh(block: re.Match[str]) -> str:
        if block["kind"] == "python":
            name = block["body"].partition("\n")[0].removeprefix("# ")
            (folder / name).write_text(block["body"], encoding="utf-8")
        if block["kind"] != "console":
            return block[0]
        told = (f"$ {command}\n{output(command, folder)}" for command in commands(block["body"]))
        return f"```console\n{''.join(told)}```"

    return _BLOCK.sub(fresh, text)


def settled(text: str) -> str:
    """The text without what differs from run to run."""
    for pattern, put in _VARIES:
        text = re.sub(pattern, put, text)
    return text


@pytest.mark.live
def test_examples_print_what_the_readme_shows(tmp_path: Path) -> None:
    text = README.read_text(encoding="utf-8")
    assert settled(rerun(text, tmp_path)) == settled(text)


def options_told() -> Iterator[tuple[str, str]]:
    """Every command and option that the README mentions in code."""
    for command in re.findall(r"(?:`|^\$ )inductor-audit ([^`\n]+)", README.read_text(encoding="utf-8"), re.MULTILINE):
        name, *arguments = shlex.split(command)
        for argument in arguments:
            if argument.startswith("--") and argument != "--":
                yield name, argument.partition("=")[0]


def test_the_readme_speaks_of_options_that_exist() -> None:
    told = set(options_told())
    assert len(told) > 5
    for name, option in told - {("capture", "--epochs")}:
        command = cli.cli.commands[name]
        assert option in {opt for param in command.params if isinstance(param, click.Option) for opt in param.opts}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        README.write_text(rerun(README.read_text(encoding="utf-8"), Path(scratch)), encoding="utf-8")
