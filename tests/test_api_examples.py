"""The documented examples of the Python interface run and give what the page says."""

from __future__ import annotations

import doctest
import subprocess
import sys
from pathlib import Path

import pytest

import analyzer

ROOT = Path(__file__).parent.parent


def test_the_examples_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    failed, tried = doctest.testfile(str(ROOT / "docs/api.md"), module_relative=False)
    assert tried > 20
    assert failed == 0


@pytest.mark.parametrize("name", analyzer.__all__)
def test_what_is_promised_is_there(name: str) -> None:
    assert callable(getattr(analyzer, name))


def test_nothing_else_is_promised() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'load_runs'"):
        _ = analyzer.load_runs


def test_importing_costs_nothing() -> None:
    heavy = ("torch", "lark", "networkx", "rich", "analyzer.load")
    code = f"import sys, analyzer; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
