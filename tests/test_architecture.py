"""The layers of the design hold: who may import what is read off the source, not trusted to habit."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
INSIDE = Path("analyzer/capture/inside")
SOURCES = sorted(path.relative_to(ROOT) for path in [*ROOT.glob("analyzer/**/*.py"), ROOT / "cli.py"])


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, anywhere in it, with the names taken from it."""
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            yield node.module or ""
            yield from (f"{node.module}.{name.name}" for name in node.names)


def importers(package: str) -> set[Path]:
    """The files that import a package or a part of it."""
    return {path for path in SOURCES if any(f"{name}.".startswith(f"{package}.") for name in imports(path))}


def outside(found: set[Path], *allowed: str) -> set[Path]:
    return {path for path in found if not any(path.is_relative_to(folder) for folder in allowed)}


def test_the_rules_see_the_imports() -> None:
    """Guards the test itself: without these the rules below would hold for an empty tree."""
    assert importers("lark")
    assert importers("torch")
    assert importers("rich")


@pytest.mark.parametrize(
    ("package", "allowed"),
    [
        ("torch", (str(INSIDE),)),
        ("lark", ("analyzer/artifacts",)),
        ("rich", ("analyzer/views", "cli.py")),
        ("click", ("cli.py",)),
        ("jinja2", ("analyzer/views/html",)),
        ("analyzer.views", ("analyzer/views", "cli.py")),
        ("cli", ()),
    ],
)
def test_only_its_layer_imports(package: str, allowed: tuple[str, ...]) -> None:
    assert outside(importers(package), *allowed) == set()


def test_parsers_know_records_only() -> None:
    """`parse(text, source) -> records`: no facts, no loading, no capture."""
    layers = ("analyzer.facts", "analyzer.load", "analyzer.analyze", "analyzer.audit", "analyzer.capture")
    found = {
        (path, layer) for layer in layers for path in importers(layer) if path.is_relative_to("analyzer/artifacts")
    }
    assert found == set()


def test_the_hook_inside_the_child_needs_only_torch_and_the_standard_library() -> None:
    """It runs in the user's interpreter, where the analyzer and its dependencies are not installed."""
    for package in ("analyzer", "rich", "lark", "networkx", "click"):
        assert {path for path in importers(package) if path.is_relative_to(INSIDE)} == set()


def test_only_views_and_the_command_line_print() -> None:
    """The hook, which has no view at hand in the user's process, may write to its standard error."""
    printing = {
        path
        for path in SOURCES
        if not path.is_relative_to(INSIDE)
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    }
    assert printing == set()


@pytest.mark.parametrize("forbidden", ["eval", "exec", "__import__"])
def test_nothing_is_evaluated(forbidden: str) -> None:
    """Artifacts are untrusted text."""
    calls = {
        path
        for path in SOURCES
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == forbidden
    }
    assert calls == set()


def test_nothing_is_unpickled() -> None:
    assert {path for module in ("pickle", "marshal", "shelve") for path in importers(module)} == set()
