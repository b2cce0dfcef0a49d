"""Facts that our own capture recorded inside the compiler: exact, so they settle what they speak of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from analyzer.analyze.align import HELPER
from analyzer.analyze.owners import Owners
from analyzer.analyze.storage import Home
from analyzer.facts import Evidence, Storage

if TYPE_CHECKING:
    from analyzer.artifacts.sidecar_records import RecordedBuffer, Sidecar


@dataclass(frozen=True)
class Recorded:
    """One graph's sidecar, by name. Only for compiles that came to their end."""

    sidecar: Sidecar

    @cached_property
    def buffers(self) -> Mapping[str, RecordedBuffer]:
        """Every buffer, those of subgraphs included."""
        return {buffer.name: buffer for buffer in self.sidecar.buffers()}

    @cached_property
    def kernel_origins(self) -> Mapping[str, tuple[str, ...]]:
        """For each generated kernel the FX nodes that it computes, over all its uses."""
        found: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for graph in self.sidecar.graphs:
            for kernel in graph.kernels:
                found[kernel.name].update(dict.fromkeys(kernel.origins))
        return {name: tuple(origins) for name, origins in found.items()}

    @cached_property
    def kernel_of(self) -> Mapping[str, str]:
        """For each post-fusion group the first of its kernels, or its extern call."""
        return {
            group.name: group.kernels[0] for graph in self.sidecar.graphs for group in graph.groups if group.kernels
        }

    def owners(self) -> Owners:
        """Whose value each buffer holds: its origin node, or the node whose lowering gave it.

        A getitem on the results of one lowering makes no IR node, so Inductor notes no origin node there.
        """
        found = {name: buffer.origin_node or self._lowered.get(name) for name, buffer in self.buffers.items()}
        node = {name: owner for name, owner in found.items() if owner is not None}
        return Owners(
            node=node,
            evidence=dict.fromkeys(self.buffers, Evidence.CAPTURE),
            reasons={name: HELPER for name in self.buffers if name not in node},
        )

    @cached_property
    def _lowered(self) -> Mapping[str, str]:
        """For each buffer the first FX node that lowering put into it; those after it are views."""
        lowered = [lowering for graph in self.sidecar.graphs for lowering in graph.lowerings]
        return {lowering.buffer: lowering.node for lowering in reversed(lowered) if lowering.buffer is not None}

    def home(self, name: str) -> Home | None:
        """Where a buffer lives."""
        buffer = self.buffers.get(name)
        if buffer is None or buffer.storage not in list(Storage):
            return None
        return Home(Storage(buffer.storage), buffer.shares_with)


def recorded(sidecar: Sidecar | None) -> Recorded | None:
    """The sidecar's facts, if its compile was completed."""
    complete = sidecar is not None and sidecar.root is not None and sidecar.root.complete
    return Recorded(sidecar) if sidecar is not None and complete else None
