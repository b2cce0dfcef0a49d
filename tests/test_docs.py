"""The console examples of docs/ are what the tool prints on the committed fixtures, or on captures of their own.

`python -m tests.test_docs` writes the present output into the pages, `python -m tests.test_docs --live` into those that
capture.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

import pytest

from tests import accuracy, test_readme
from tests.test_readme import output

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
_PROGRAM = re.compile(r"^```python\n# \w+\.py$", re.MULTILINE)
LIVE = [page for page in PAGES if _PROGRAM.search(page.read_text(encoding="utf-8"))]
"""Pages with a program of their own, which their commands capture."""

READING = [page for page in PAGES if page not in LIVE]
SHORT = ("--rounds", "5", "--processes", "1")
"""A measurement that is run to see that it runs."""

_BLOCK = re.compile(r"^```console\n\$ (?P<command>.*)\n(?P<body>(?:(?!```).*\n)*)```$", re.MULTILINE)


def told(command: str) -> str:
    """What a command of a page prints, run in the checkout."""
    program, *arguments = command.split()
    if program == "inductor-audit":
        return output(command, ROOT)
    assert command.startswith("python -m tests.accuracy --table ")
    runs = [str(path) for pattern in arguments[3:] for path in sorted(ROOT.glob(pattern))]
    printed = io.StringIO()
    with mock.patch.object(sys, "argv", ["accuracy", "--table", *runs]), contextlib.redirect_stdout(printed):
        accuracy.main()
    return printed.getvalue()


def rerun(text: str) -> str:
    return _BLOCK.sub(lambda block: f"```console\n$ {block['command']}\n{told(block['command'])}```", text)


@pytest.mark.parametrize("page", READING, ids=lambda page: page.stem)
def test_examples_print_what_the_page_shows(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert rerun(text) == text


def shell_lines(text: str) -> list[list[str]]:
    """The commands that a page gives without their output."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


def spaced(text: str) -> str:
    """Without what depends on the run, such as how wide a column of times is."""
    return re.sub(r" +", " ", test_readme.settled(text))


@pytest.mark.live
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
@pytest.mark.parametrize("page", LIVE, ids=lambda page: page.stem)
def test_experiments_print_what_the_page_shows_and_all_commands_run(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert spaced(test_readme.rerun(text, tmp_path)) == spaced(text)
    for program, *arguments in shell_lines(text):
        assert program == "inductor-audit"
        command = [sys.executable, str(ROOT / "cli.py"), *arguments, *SHORT]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=1800, check=False)
        assert done.returncode in (0, 1), done.stderr
        for at, argument in enumerate(arguments):
            if argument in ("--latex", "--markdown", "--csv", "--html"):
                assert (tmp_path / arguments[at + 1]).stat().st_size > 100


def test_the_readme_has_the_figures_of_the_page_on_accuracy() -> None:
    table = re.compile(r"^\| \| provenance \| bare \|\n(?:\|.*\n)+", re.MULTILINE)
    readme, page = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/accuracy.md"))
    assert table.findall(readme) == table.findall(page) != []


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.stem)
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def write() -> None:
    """Puts the present output into the pages: those that read fixtures, or those that capture."""
    for page in LIVE if "--live" in sys.argv else READING:
        text = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as scratch:
            fresh = test_readme.rerun(text, Path(scratch)) if page in LIVE else rerun(text)
        page.write_text(fresh, encoding="utf-8")


if __name__ == "__main__":
    write()
