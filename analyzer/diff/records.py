"""The records of a diff: an edit script of small frozen facts. Every one mirrors: swap the runs, swap its sides."""

from __future__ import annotations

from dataclasses import dataclass, replace

from analyzer.facts import Summary
from analyzer.model import Location, StrEnum


class Layer(StrEnum):
    """Where the compiler decided differently, in the order of compilation."""

    FX = "fx"
    LOWERING = "lowering"
    SCHEDULING = "scheduling"
    CODE = "code"
    COST = "cost"


class Kind(StrEnum):
    """What happened to the subject on the way from the old run to the new one."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    SPLIT = "split"
    MERGED = "merged"
    MOVED = "moved"


_MIRRORED = {
    Kind.ADDED: Kind.REMOVED,
    Kind.REMOVED: Kind.ADDED,
    Kind.SPLIT: Kind.MERGED,
    Kind.MERGED: Kind.SPLIT,
}


@dataclass(frozen=True, slots=True)
class Side:
    """One run's part in a change: the ids there, what is the case there, the place, and the code when code differs.

    No ids: the run has nothing of the kind.
    """

    ids: tuple[str, ...] = ()
    text: str = ""
    at: Location | None = None
    code: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """One edit. `aspect` says which property differs: `fate`, `stride`, `members`, `storage`, `body`, ...

    `subject` says in words what kind of thing changed and how to recognize it (an FX target, an IR class).
    """

    kind: Kind
    layer: Layer
    aspect: str
    subject: str
    old: Side = Side()
    new: Side = Side()

    @property
    def detail(self) -> str:
        """Old and new value in one sentence."""
        if self.kind == Kind.ADDED:
            return self.new.text
        if self.kind == Kind.REMOVED:
            return self.old.text
        return f"{self.old.text} → {self.new.text}"

    def mirrored(self) -> Change:
        """The same edit seen from the other run."""
        return replace(self, kind=_MIRRORED.get(self.kind, self.kind), old=self.new, new=self.old)


@dataclass(frozen=True, slots=True)
class Repeated:
    """A change and how often it occurs; `others` are the further occurrences."""

    change: Change
    others: tuple[Change, ...] = ()

    @property
    def count(self) -> int:
        """Occurrences, the shown one included."""
        return 1 + len(self.others)


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """A setting with different effective values; None: at its default, which is not known.

    `graphs` are the pairs of graphs compiled with it by their old names, `new_graphs` by their new ones; both are empty
    when that is all of them.
    """

    key: str
    old: str | None
    new: str | None
    old_at: Location | None = None
    new_at: Location | None = None
    graphs: tuple[str, ...] = ()
    new_graphs: tuple[str, ...] = ()

    def mirrored(self) -> ConfigChange:
        """The same setting seen from the other run."""
        return ConfigChange(self.key, self.new, self.old, self.new_at, self.old_at, self.new_graphs, self.graphs)


@dataclass(frozen=True, slots=True)
class EnvironmentChange:
    """What surrounds the compiles: torch version, device, cache state, replaced functions, the program itself.

    `warning`: why the comparison is then of something else; None for what a comparison survives.
    """

    what: str
    old: str
    new: str
    warning: str | None = None

    def mirrored(self) -> EnvironmentChange:
        """The same difference seen from the other run."""
        return replace(self, old=self.new, new=self.old)


@dataclass(frozen=True, slots=True)
class GraphDiff:
    """Two graphs and what differs between them; None where a run has no counterpart.

    `unknown` are sentences about what could not be compared, because an artifact of one side is missing or unread.
    """

    old: str | None
    new: str | None
    changes: tuple[Change, ...] = ()
    before: Summary | None = None
    after: Summary | None = None
    unknown: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether both runs have the graph and nothing in it differs."""
        return self.old is not None and self.new is not None and not self.changes


@dataclass(frozen=True, slots=True)
class RunDiff:
    """Everything that differs between two runs: configuration and environment first, then graph by graph."""

    old: str
    new: str
    config: tuple[ConfigChange, ...] = ()
    environment: tuple[EnvironmentChange, ...] = ()
    graphs: tuple[GraphDiff, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether nothing at all differs, as far as the artifacts tell."""
        return not self.config and not self.environment and all(graph.equal for graph in self.graphs)

    @property
    def complete(self) -> bool:
        """Whether there was something to compare, and nothing that only one run tells."""
        return bool(self.graphs) and not any(graph.unknown for graph in self.graphs)

    def only(self, layer: Layer) -> RunDiff:
        """The same diff with the changes of one layer alone."""
        kept = (replace(graph, changes=tuple(c for c in graph.changes if c.layer == layer)) for graph in self.graphs)
        return replace(self, graphs=tuple(kept))
