"""`ptx.json`: what ptxas says of the Triton kernels of a graph, compiled for a device that was not there.

Written by analyzer/capture/inside/inductor_audit_inside/deviceless/ptx.py (`capture --ptx`). Estimates: each kernel was
compiled in the first of its configurations, and a device would have chosen one by timing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from analyzer.artifacts import versioned_json as read
from analyzer.model import Artifact, artifact_of

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class KernelEstimate:
    """One kernel: registers and bytes of stack per thread, bytes spilled per thread, bytes of shared memory per block.

    `config` is the one that was compiled, of `configs` that there are. A figure is None when ptxas did not tell it;
    `error` says why there is none at all.
    """

    name: str
    registers: int | None = None
    spill_stores: int | None = None
    spill_loads: int | None = None
    stack_frame: int | None = None
    shared_bytes: int | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    configs: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class PtxEstimates:
    """The kernels of a graph, in the order of its code."""

    artifact: Artifact
    kernels: tuple[KernelEstimate, ...] = ()


def parse(text: str, source: str) -> PtxEstimates:
    """The estimates of a graph. ArtifactError with a position for text that is none; unknown keys are ignored."""
    found = read.document(text, source, SCHEMA_VERSION, "estimates by ptxas")
    entries = read.mapping(found.get("kernels")).items()
    return PtxEstimates(artifact_of(source, text), tuple(_kernel(name, read.mapping(entry)) for name, entry in entries))


def _kernel(name: str, entry: read.Json) -> KernelEstimate:
    return KernelEstimate(
        name=name,
        registers=read.number(entry.get("registers")),
        spill_stores=read.number(entry.get("spill_stores")),
        spill_loads=read.number(entry.get("spill_loads")),
        stack_frame=read.number(entry.get("stack_frame")),
        shared_bytes=read.number(entry.get("shared_bytes")),
        config={key: str(value) for key, value in read.mapping(entry.get("config")).items()},
        configs=read.number(entry.get("configs")),
        error=read.text(entry.get("error")),
    )
