"""Tells by its looks what kind of artifact one text is, whatever its file is called."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from analyzer.artifacts import fx_graph, ir_dump, output_code, paste, provenance, rare, runnable

_TRACE_HEADER = re.compile(r"^[VIWECD]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ [^\]\n]*\] \{", re.M)
_TAGGED = re.compile(r"\[__(?:ir_pre_fusion|ir_post_fusion|output_code|post_grad_graphs|pre_grad_graphs|fusion)\]")
_DUMP_HEADER = re.compile(r"^\W*(?:\w+: )?\w*(?:op|buf)\d+\w*: \w+\(", re.M)
_PRETTY_IR = re.compile(r"PRETTY IR|^\W*kernel op\d+\($", re.M)
_FORWARD = re.compile(r"^\s*def forward\(self", re.M)
_CODE = re.compile(r"async_compile|AsyncCompile|^def call\(|^    def call\(self|AOTInductorModel|inductor_entry", re.M)
_RUNNABLE = re.compile(r"^torch\._inductor\.config\.|run_repro\(|^# torch version:", re.M)
_PROVENANCE = re.compile(r'"(?:preToPost|postToPre|cppCodeToPost|postToCppCode)"|\A\s*\{"version": [\d.]+\}\s*\Z')
_SIDE_RECORDS = ("kernel_stack_traces", "to_post_grad_nodes", "to_pre_grad_nodes")
_SIDECAR = re.compile(r'\A\{"schema_version":\s*\d+,')
_HEAD = 200_000
"""Characters of a text that are looked at, where the first ones tell."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of artifact: its field in `CompiledGraph`, its parser, and how its text or name looks."""

    field: str
    parse: Callable[[str, str], Any]
    looks: Callable[[str, str], bool]


def _is_post(text: str, name: str) -> bool:
    return "post" in name or ("pre" not in name and "FusedSchedulerNode(" in text)


def _is_side_record(name: str) -> bool:
    return any(record in name for record in _SIDE_RECORDS)


_KINDS = (
    Kind("sidecar", rare.sidecar, lambda text, name: bool(name == rare.SIDECAR and _SIDECAR.match(text))),
    Kind("provenance", provenance.parse, lambda text, name: bool(_PROVENANCE.search(text[:_HEAD]))),
    Kind("provenance", provenance.parse, lambda text, name: text.startswith("{") and _is_side_record(name)),
    Kind("runnable", runnable.parse, lambda text, name: bool(_RUNNABLE.search(text) and _FORWARD.search(text))),
    Kind("code", output_code.parse, lambda text, name: bool(_CODE.search(text))),
    Kind("fx", fx_graph.parse, lambda text, name: bool(_FORWARD.search(text))),
    Kind("post", ir_dump.parse, lambda text, name: bool(_DUMP_HEADER.search(text)) and _is_post(text, name)),
    Kind("pre", ir_dump.parse, lambda text, name: bool(_DUMP_HEADER.search(text) or _PRETTY_IR.search(text))),
)


def is_trace_log(text: str) -> bool:
    """Whether it has the record headers of a structured trace log."""
    return _TRACE_HEADER.search(text[:_HEAD]) is not None


def is_console_log(text: str) -> bool:
    """Whether it has lines that TORCH_LOGS tags."""
    return _TAGGED.search(text) is not None


def kind_of(text: str, name: str) -> Kind | None:
    """The kind of artifact that a text is, None for none that is known."""
    return next((kind for kind in _KINDS if kind.looks(text, name)), None)


def dumps_in(text: str, kind: Kind) -> dict[str, str]:
    """For each of `pre` and `post` that a pasted text holds (banners tell), the text with all other lines blank."""
    if kind.field not in ("pre", "post") or " FUSION" not in text:
        return {kind.field: text}
    dumps = paste.clean_dumps(text)
    lines = paste.lines_of(text)
    ends = [dump.first_line - 1 for dump in dumps[1:]] + [len(lines)]
    found: dict[str, str] = {}
    for dump, end in zip(dumps, ends, strict=True):
        if dump.kind and dump.kind not in found:
            start = dump.first_line - 1
            found[dump.kind] = "\n" * start + "\n".join(lines[start:end]) + "\n" * (len(lines) - end)
    return found if len(found) > 1 else {kind.field: text}
