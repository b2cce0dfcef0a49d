"""Damaged runs, by property: whatever happened to the files, the tool reports what is left, and tells the truth."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from analyzer.analyze import analyze
from analyzer.errors import AnalyzerError
from analyzer.load import load_run
from analyzer.views.json import dumps, report_document
from analyzer.views.report import ReportView

FIXTURES = Path(__file__).parent.parent / "fixtures"
SMALL_RUNS = (
    FIXTURES / "runs/cpu-2.13/c11_mlp_train",
    FIXTURES / "runs/cpu-2.13/c29_cond",
    FIXTURES / "runs/cpu-2.13/c45_cpp_wrapper",
    FIXTURES / "runs/cpu-2.5/c11_mlp_train",
    FIXTURES / "runs/cuda-2.14.1-a100/combo",
    FIXTURES / "runs/cuda-2.9.1-a100/layernorm",
    FIXTURES / "captured/sin_cos_inlining",
)
FILES = {run: sorted(path for path in run.rglob("*") if path.is_file() and path.stat().st_size) for run in SMALL_RUNS}
STATES = {"parsed", "partial", "missing", "empty", "unsupported"}
PATIENCE_MS = 5_000

Mutation = Callable[[bytes, bytes], bytes | None]
"""(a file's bytes, those of another file) → the damaged bytes, None for a file that is gone."""

PROPERTY = settings(
    max_examples=40,
    deadline=PATIENCE_MS,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def lines_of(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True) or [b""]


@st.composite
def mutations(draw: st.DrawFn) -> Mutation:
    """One kind of damage at random places, which count in thousandths of the file."""
    one, two = sorted((draw(st.integers(0, 999)), draw(st.integers(0, 999))))
    junk = draw(st.binary(min_size=1, max_size=12))
    times = draw(st.integers(2, 40))

    def part(data: bytes) -> tuple[int, int]:
        return len(data) * one // 1000, len(data) * two // 1000

    def swapped(data: bytes) -> bytes:
        lines = lines_of(data)
        first, second = len(lines) * one // 1000, len(lines) * two // 1000
        lines[first], lines[second] = lines[second], lines[first]
        return b"".join(lines)

    def flipped(data: bytes) -> bytes:
        at = part(data)[0]
        return data[:at] + bytes([data[at] ^ (1 << times % 8)]) + data[at + 1 :]

    kinds: dict[str, Mutation] = {
        "gone": lambda data, _: None,
        "empty": lambda data, _: b"",
        "cut": lambda data, _: data[: part(data)[0]],
        "hole": lambda data, _: data[: part(data)[0]] + data[part(data)[1] :],
        "splice": lambda data, other: (
            data[: part(data)[0]] + other[part(other)[0] : part(other)[1]] + data[part(data)[1] :]
        ),
        "swap": lambda data, _: swapped(data),
        "flip": lambda data, _: flipped(data),
        "insert": lambda data, _: data[: part(data)[0]] + junk + data[part(data)[0] :],
        "twice": lambda data, _: data + data,
        "repeat": lambda data, _: data[: part(data)[0]] + junk[:1] * 1000 * times + data[part(data)[0] :],
        "nest": lambda data, _: (
            data[: part(data)[0]] + b"([{"[times % 3 : times % 3 + 1] * 5000 + data[part(data)[0] :]
        ),
        "crlf": lambda data, _: data.replace(b"\n", b"\r\n"),
        "other": lambda data, other: other,
    }
    return kinds[draw(st.sampled_from(sorted(kinds)))]


def report(run: Path) -> dict[str, object]:
    """Loads, analyzes, and prints in both forms; gives the document."""
    loaded = load_run(run)
    facts = [analyze(graph) for graph in loaded.graphs]
    Console(file=StringIO(), width=100).print(ReportView(loaded, facts, True))
    found: dict[str, object] = json.loads(dumps(report_document(loaded, facts)))
    return found


def check_artifact(artifact: dict[str, object], path: Path, is_touched: bool) -> None:
    """The state of an artifact that lies in the folder, against the file itself."""
    state, lines, unparsed = artifact["state"], artifact["lines"], artifact["unparsed_lines"]
    errors = artifact["errors"]
    assert isinstance(lines, int)
    assert isinstance(unparsed, int)
    assert isinstance(errors, list)
    assert state in STATES
    data = path.read_bytes()
    if not is_touched:
        assert (state, unparsed, errors) == ("empty" if not data.strip() else "parsed", 0, []), path.name
    if not data.strip():
        assert state == "empty"
    if unparsed or errors:
        assert state in ("partial", "unsupported"), (path.name, state)
    assert state not in ("partial", "missing") or errors, (path.name, "says nothing of what is wrong")
    assert all(1 <= error["line"] <= lines + 1 and error["column"] >= 1 for error in errors), errors


@PROPERTY
@given(data=st.data())
def test_a_damaged_run_is_reported_truthfully(data: st.DataObject) -> None:
    source = data.draw(st.sampled_from(SMALL_RUNS), "run")
    touched = data.draw(st.lists(st.sampled_from(FILES[source]), min_size=1, max_size=3, unique=True), "files")
    with tempfile.TemporaryDirectory() as folder:
        run = Path(shutil.copytree(source, Path(folder, "run")))
        for file in touched:
            other = data.draw(st.sampled_from(FILES[source]), "other")
            target = run / file.relative_to(source)
            damaged = data.draw(mutations(), "damage")(file.read_bytes(), other.read_bytes())
            target.unlink() if damaged is None else target.write_bytes(damaged)
        try:
            document = report(run)
        except AnalyzerError as error:
            assert error.hint, "every error says what to do next"  # noqa: PT017
            return
        damaged_files = {run / file.relative_to(source) for file in touched}
        for graph in document["graphs"]:  # type: ignore[attr-defined]
            for artifact in graph["artifacts"]:
                path = Path(graph["path"], artifact["file"])
                if path.is_file():
                    check_artifact(artifact, path, path in damaged_files)
                else:
                    assert artifact["state"] != "empty" or Path(graph["path"]).is_file()


@pytest.mark.parametrize(
    "name", ["ir_pre_fusion.txt", "ir_post_fusion.txt", "fx_graph_transformed.py", "output_code.py"]
)
@settings(max_examples=12, deadline=PATIENCE_MS)
@given(position=st.integers(0, 999))
def test_no_line_of_junk_goes_unnoticed(name: str, position: int) -> None:
    """A line that nobody writes, anywhere in a dump or in the wrapper, is one that the report counts."""
    source = next(SMALL_RUNS[0].glob(f"**/model__0_forward_1.0/{name}"))
    lines = source.read_text().split("\n")
    first = next((n for n, line in enumerate(lines) if line.startswith("class Runner")), 0)
    last = next((n for n, line in enumerate(lines) if line.startswith("runner = ")), len(lines) - 3)
    lines.insert(first + 1 + (last - first - 1) * position // 1000, "?? junk ??")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, name).write_text("\n".join(lines))
        (graph,) = load_run(folder).graphs
    artifact = next(artifact for artifact in graph.artifacts if artifact.file == name)
    assert artifact.state == "partial"
    assert artifact.unparsed_lines >= 1


@settings(max_examples=40, deadline=PATIENCE_MS)
@given(
    data=st.binary(max_size=400), name=st.sampled_from(["run.zip", "run.tar", "run.tgz", "x.log", "ir_pre_fusion.txt"])
)
def test_any_bytes_end_in_a_run_or_an_error_of_our_own(data: bytes, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        try:
            report(path)
        except AnalyzerError as error:
            assert str(error).startswith(f"{path}:")  # noqa: PT017
            assert error.hint  # noqa: PT017
