"""`deviceless.json`: what stood in for a GPU that was not there, and what was assumed in place of measuring it.

Written by analyzer/capture/inside/inductor_audit_inside/deviceless, beside each graph's artifacts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from analyzer.artifacts import versioned_json as read
from analyzer.model import Artifact, artifact_of

SCHEMA_VERSION = 1

AUTOTUNE, PAD_MM, SDPA, PLACEHOLDER = "autotune", "pad_mm", "sdpa", "placeholder"

QUESTIONS: Mapping[str, str] = {
    AUTOTUNE: "which kernel is the fastest",
    PAD_MM: "whether padding a matrix product pays",
    SDPA: "which attention kernel the device offers",
    PLACEHOLDER: "a value that the program read from the device",
}
"""What was not answered by a device, by the kind of choice."""


@dataclass(frozen=True, slots=True)
class AssumedChoice:
    """A choice that a device would have decided. `kind`: see QUESTIONS; `count`: how often it was made."""

    kind: str
    subject: str
    chosen: str
    basis: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class AppliedPatch:
    """Something of torch that was replaced; `hits`: how often it had been used when this graph's code was written."""

    name: str
    reason: str
    installed: bool
    hits: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Deviceless:
    """How a graph was compiled for a device that was not there.

    `profile` and `device` name it; `support` is supported or experimental, `support_notes` say why; `figures` are the
    profile's, as text.
    """

    artifact: Artifact
    profile: str
    device: str
    torch: str | None = None
    triton: str | None = None
    support: str | None = None
    support_notes: tuple[str, ...] = ()
    figures: Mapping[str, str] = field(default_factory=dict)
    patches: tuple[AppliedPatch, ...] = ()
    choices: tuple[AssumedChoice, ...] = ()


def parse(text: str, source: str) -> Deviceless:
    """The record of a graph. ArtifactError with a position for text that is none; unknown keys are ignored."""
    found = read.document(text, source, SCHEMA_VERSION, "a record of a capture without a device")
    support = read.mapping(found.get("support"))
    return Deviceless(
        artifact=artifact_of(source, text),
        profile=read.text(found.get("profile")) or "unknown",
        device=read.text(found.get("device")) or "unknown",
        torch=read.text(found.get("torch")),
        triton=read.text(found.get("triton")),
        support=read.text(support.get("level")),
        support_notes=read.texts(support.get("notes")),
        figures={key: str(value) for key, value in read.mapping(found.get("figures")).items()},
        patches=tuple(map(_patch, read.mappings(found.get("patches")))),
        choices=tuple(map(_choice, read.mappings(found.get("choices")))),
    )


def _patch(entry: read.Json) -> AppliedPatch:
    return AppliedPatch(
        name=read.text(entry.get("name")) or "unknown",
        reason=read.text(entry.get("reason")) or "",
        installed=bool(read.flag(entry.get("installed"))),
        hits=read.number(entry.get("hits")) or 0,
        error=read.text(entry.get("error")),
    )


def _choice(entry: read.Json) -> AssumedChoice:
    return AssumedChoice(
        kind=read.text(entry.get("kind")) or "unknown",
        subject=read.text(entry.get("subject")) or "",
        chosen=read.text(entry.get("chosen")) or "",
        basis=read.text(entry.get("basis")) or "",
        count=read.number(entry.get("count")) or 1,
    )
