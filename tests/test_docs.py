"""The console examples of docs/ are what the tool prints on the committed fixtures.

`python -m tests.test_docs` writes the present output into the pages.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path
from unittest import mock

import pytest

from tests import accuracy
from tests.test_readme import output

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_print_what_the_page_shows(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert rerun(text) == text


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.stem)
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(rerun(page.read_text(encoding="utf-8")), encoding="utf-8")
