"""`ir_pre_fusion.txt` and `ir_post_fusion.txt`: the scheduler nodes of one graph (torch 2.0 to 2.15).

torch/_inductor/debug.py writes them (`DebugFormatter.ir_pre_fusion`, `ir_post_fusion`); the text of each node comes
from torch/_inductor/scheduler.py (`BaseSchedulerNode.debug_str`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from analyzer.artifacts import paste
from analyzer.artifacts.ir_messages import BadNodeError
from analyzer.artifacts.ir_nesting import Found, nest
from analyzer.artifacts.ir_nodes import NodeReader, read_by_shape, read_plain
from analyzer.artifacts.ir_scan import Chunk, count_lines, scan, split_at_boundary
from analyzer.model import Artifact, ArtifactState, DumpNode, IrDump, Location, Problem

_LONGEST_EXCERPT = 200
_HEADER = "expected a node's header, NAME: CLASS(CLASS)"
_NO_NODES = "no scheduler node: the outputs are inputs, constants or views of them, or the compile stopped before"
_FOREIGN = (
    (r"PRETTY IR\b|^\s*(?:extern_)?kernel \w+\(|^\s*unimplemented \w+", "the pretty IR form, which is not supported"),
    (r"\A\s*(?:<!doctype|<html|<\?xml)", "an HTML or XML page, not an IR dump"),
    (r"\x00", "binary data, not an IR dump"),
    (r"^(?:import |from [\w.]+ import |def \w+\(|class [\w<>]+\()", "Python code, not an IR dump"),
    (r"\A\s*[{\[]", "JSON, not an IR dump"),
)


def parse(text: str, source: str) -> IrDump:
    """Read a dump; `source` is the file's name in locations.

    Never raises: a node that cannot be read is a problem with its place, a form that is not known `unsupported`. Of a
    log that holds several dumps the first is read that `source` names (pre or post).
    """
    return _parse(text, source, read_by_shape)


def parse_plain(text: str, source: str) -> IrDump:
    """The same by the grammar alone, node by node: slow, and equal."""
    return _parse(text, source, read_plain)


def _parse(text: str, source: str, read: NodeReader) -> IrDump:
    if not paste.holds_controls(text):
        dump = _read_dump(text, source, read)
        if not dump.artifact.problems or not paste.needs_cleaning(text):
            return dump
    dumps = paste.clean_dumps(text)
    wanted = paste.choose(dumps, _kind(source))
    dump = _read_dump(wanted.text, source, read)
    others = (other for other in dumps if other is not wanted)
    problems = dump.artifact.problems + tuple(_left_out(other, source) for other in others)
    return IrDump(_as_pasted(dump.artifact, problems, text, wanted.text), dump.nodes)


def _read_dump(text: str, source: str, read: NodeReader) -> IrDump:
    found = read_chunks(text, source, read)
    if found and not any(item.chunk.name for item in found):
        return IrDump(_foreign(text, source, found[0].chunk))
    nodes, problems = nest(found)
    return IrDump(_artifact(text, source, problems), nodes)


def read_chunks(text: str, source: str, read: NodeReader = read_by_shape) -> list[Found]:
    """What stands in a dump, in order and not yet nested; every line that is not blank is in one of them."""
    chunks = list(scan(text))
    found = [item for chunk in chunks for item in _read(chunk, source, read)]
    if found and not text.endswith("\n\n"):
        found[-1] = _checked_end(found[-1], chunks[-1], source)
    return found


def _artifact(text: str, source: str, problems: tuple[Problem, ...]) -> Artifact:
    if not text or text.isspace():
        return Artifact(source, ArtifactState.EMPTY, text.count("\n"), cause=_NO_NODES)
    state = ArtifactState.PARTIAL if problems else ArtifactState.PARSED
    return Artifact(source, state, text.count("\n") + (not text.endswith("\n")), problems)


# ------------------------------------------------------------------------------------------------------ single nodes


def _read(chunk: Chunk, source: str, read: NodeReader) -> Iterator[Found]:
    """The node of a chunk, or what is wrong with it; text behind a node's end costs the text, not the node."""
    if chunk.name is None:
        yield _lost(chunk, source, BadNodeError(1, 1 + _indent(chunk.text), _HEADER))
        return
    try:
        yield _found(chunk, read(chunk.text, source, chunk.line))
    except BadNodeError as bad:
        yield from _salvaged(chunk, source, read, bad)


def _salvaged(chunk: Chunk, source: str, read: NodeReader, bad: BadNodeError) -> Iterator[Found]:
    parts = split_at_boundary(chunk, bad.line)
    if parts is not None:
        head, tail = parts
        try:
            yield _found(head, read(head.text, source, head.line))
        except BadNodeError:
            pass
        else:
            line = bad.line - (tail.line - head.line)
            yield _lost(tail, source, BadNodeError(line, bad.column, _HEADER))
            return
    yield _lost(chunk, source, bad)


def _found(chunk: Chunk, node: DumpNode) -> Found:
    return Found(chunk, node.location or Location("", chunk.line + 1), node)


def _lost(chunk: Chunk, source: str, bad: BadNodeError) -> Found:
    """A stretch that could not be read; a group keeps its name, so that its members find it."""
    place = Location(source, chunk.line + bad.line, bad.column)
    lines = chunk.text.split("\n")
    excerpt = lines[bad.line - 1][:_LONGEST_EXCERPT] if bad.line <= len(lines) else ""
    problem = Problem(place, bad.message, excerpt, chunk.lines)
    return Found(chunk, place, problem=problem)


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip(" \t"))


def _checked_end(last: Found, chunk: Chunk, source: str) -> Found:
    """A file that was cut at a line's end: what the last node's class always has is missing."""
    wanted = _missing_at_end(last.node, chunk.text) if last.node else None
    if wanted is None:
        return last
    lines = chunk.text.split("\n")
    return _lost(
        chunk, source, BadNodeError(len(lines), len(lines[-1]) + 1, f"expected {wanted}, found the end of the text")
    )


def _missing_at_end(node: DumpNode, text: str) -> str | None:
    if node.node_class == "SchedulerNode" and node.inner == ("ComputedBuffer",) and node.body is None:
        return f"the loop body of {node.name}"
    if node.node_class == "ExternKernelSchedulerNode" and ".node.kernel" not in text:
        return f"{node.name}.node.kernel"
    if ".met_dependencies" not in text:
        return f"{node.name}.met_dependencies"
    return None


# ------------------------------------------------------------------------------------------- foreign and pasted text


def _foreign(text: str, source: str, first: Chunk) -> Artifact:
    """No header at all: say what the text looks like."""
    cause = next((name for pattern, name in _FOREIGN if re.search(pattern, text, re.M | re.I)), None)
    place = Location(source, first.line + 1, 1 + _indent(first.text))
    excerpt = first.text.partition("\n")[0][:_LONGEST_EXCERPT]
    problem = Problem(place, _HEADER, excerpt, first.lines)
    lines = text.count("\n") + (not text.endswith("\n"))
    return Artifact(
        source, ArtifactState.UNSUPPORTED, lines, (problem,), cause or "no node header in it, so not an IR dump"
    )


def _kind(source: str) -> str | None:
    """Which of the two dumps a file of this name holds."""
    file = source.replace("\\", "/").rpartition("/")[2]
    return next((kind for kind in ("post", "pre") if kind in file), None)


def _left_out(dump: paste.PastedDump, source: str) -> Problem:
    message = (
        f"expected one dump, found a {dump.kind}-fusion dump of its own; it was not read" if dump.kind else _HEADER
    )
    excerpt = next((line for line in dump.lines if line.strip()), "")[:_LONGEST_EXCERPT]
    return Problem(Location(source, dump.first_line), message, excerpt, count_lines("\n".join(dump.lines)))


def _as_pasted(artifact: Artifact, problems: tuple[Problem, ...], text: str, cleaned: str) -> Artifact:
    """The artifact with columns and excerpts as in the pasted text."""
    pasted, plain = paste.lines_of(text), cleaned.split("\n")
    shown = tuple(_shown_as_pasted(problem, pasted, plain) for problem in problems)
    state = ArtifactState.PARTIAL if shown and artifact.state is ArtifactState.PARSED else artifact.state
    return Artifact(artifact.file, state, len(pasted) - (pasted[-1] == ""), shown, artifact.cause)


def _shown_as_pasted(problem: Problem, pasted: list[str], plain: list[str]) -> Problem:
    place = problem.location
    if place.line > min(len(pasted), len(plain)):
        return problem
    original = pasted[place.line - 1]
    column = paste.original_column(original, plain[place.line - 1], place.column)
    return Problem(
        Location(place.file, place.line, column), problem.message, original[:_LONGEST_EXCERPT], problem.lines
    )
