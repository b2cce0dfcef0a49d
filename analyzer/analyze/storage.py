"""Where each buffer lives, read from the wrapper: allocated, in another buffer's memory, or never stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from analyzer.facts import Storage
from analyzer.model import Allocation, DumpBuffer, KernelCall, OutputCode, Rename

_NO_TENSOR = frozenset({"NoneLayout", "MultiOutputLayout"})

UNREAD = "nothing reads it: Inductor drops the buffer and keeps only the node's side effect"
"""torch/_inductor/scheduler.py, `Scheduler.dead_node_elimination`."""


@dataclass(frozen=True, slots=True)
class Home:
    """A buffer's storage, whose memory it shares, and why it is not known."""

    storage: Storage
    shares_with: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Memory:
    """What the wrapper does with buffer names."""

    allocated: frozenset[str] = frozenset()
    made: frozenset[str] = frozenset()
    renamed: Mapping[str, Rename] = field(default_factory=dict)
    returned: frozenset[str] = frozenset()
    mentioned: frozenset[str] = frozenset()

    @staticmethod
    def of(code: OutputCode) -> Memory:
        """Collects the steps of every scope (partitions and branches included)."""
        calls = [step for step in code.steps if isinstance(step, KernelCall)]
        renames = [step for step in code.steps if isinstance(step, Rename)]
        return Memory(
            allocated=frozenset(step.buffer for step in code.steps if isinstance(step, Allocation)),
            made=frozenset(name for call in calls for name in call.outputs),
            renamed={rename.new: rename for rename in renames},
            returned=frozenset(name for name in code.returns if name),
            mentioned=frozenset(name for call in calls for name in call.buffers if name),
        )

    def home(self, buffer: DumpBuffer) -> Home:
        """Storage of one buffer."""
        kind = buffer.layout.kind if buffer.layout is not None else ""
        shared = self._shared(buffer)
        if all(user.is_weak for user in buffer.users):
            return Home(Storage.REMOVED, shared, UNREAD)
        if kind in _NO_TENSOR and not buffer.mutations:
            return Home(Storage.NONE)
        if buffer.name in self.returned:
            return Home(Storage.OUTPUT, shared)
        if buffer.mutations or buffer.aliases or kind.startswith("MutationLayout"):
            return Home(Storage.ALIAS, shared)
        if (rename := self.renamed.get(buffer.name)) is not None:
            return Home(_RENAMES.get(rename.kind, Storage.ALIAS), shared)
        if buffer.name in self.allocated | self.made | self.mentioned:
            return Home(Storage.ALLOCATED)
        return Home(Storage.REMOVED)

    def _shared(self, buffer: DumpBuffer) -> str | None:
        rename = self.renamed.get(buffer.name)
        if rename is not None and rename.kind != "item":
            return rename.old
        return next(iter(buffer.mutations or buffer.aliases), None)


_RENAMES = {"reuse": Storage.REUSED, "item": Storage.ALLOCATED, "alias": Storage.ALIAS, "view": Storage.ALIAS}


def bytes_of(dtype: str | None, elements: int | None) -> int | None:
    """Memory of a tensor in bytes; None when its dtype or its size is not known as a number."""
    width = _WIDTHS.get((dtype or "").removeprefix("torch."))
    return None if width is None or elements is None else (width * elements + 7) // 8


_WIDTHS = {
    **dict.fromkeys(
        [
            "bool",
            "uint8",
            "int8",
            "float8_e4m3fn",
            "float8_e5m2",
            "float8_e4m3fnuz",
            "float8_e5m2fnuz",
            "float8_e8m0fnu",
        ],
        8,
    ),
    **dict.fromkeys(["int16", "uint16", "float16", "bfloat16", "half"], 16),
    **dict.fromkeys(["int32", "uint32", "float32", "float", "complex32"], 32),
    **dict.fromkeys(["int64", "uint64", "float64", "double", "complex64", "long"], 64),
    "complex128": 128,
}
"""Bits per element."""
