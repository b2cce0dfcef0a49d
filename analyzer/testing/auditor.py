"""Captures a function or a script for a test, and asserts on what Inductor made of it: behind the pytest fixture."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from analyzer.analyze import analyze
from analyzer.artifacts.manifest import Finding
from analyzer.capture import CaptureRequest, capture
from analyzer.contracts import Contract, Outcome, check, clauses_of, parse
from analyzer.contracts.because import Because
from analyzer.contracts.placement import fate_of
from analyzer.contracts.selectors import candidates
from analyzer.errors import CaptureError, UsageError
from analyzer.facts import Fate, GraphFacts, NodeFact
from analyzer.load import load_run
from analyzer.model import Location, Run
from analyzer.testing.by_name import CALLER, request_of

_LAST_LINES = 15
"""Lines of the child's output that a failure shows."""


class NodeFate(str):
    """A fate as text, which a failing assertion explains."""

    __slots__ = ("facts", "node")
    facts: GraphFacts
    node: NodeFact

    @classmethod
    def of(cls, facts: GraphFacts, node: NodeFact) -> NodeFate:
        """The fate of a node of a graph."""
        fate = cls(node.fate)
        fate.facts, fate.node = facts, node
        return fate

    def explained(self) -> str:
        """The buffers and kernels that compute the node, and why; of an unknown fate, why it is unknown."""
        reason = f": {self.node.reason}" if self.node.fate == Fate.UNKNOWN and self.node.reason else ""
        return f"{self.node.name} is {fate_of(self.node)}{reason}{Because(self.facts).lowered(self.node)}"


def explained(*values: object) -> list[str]:
    """What a failing assertion says of the fates among the values that it compares."""
    return [value.explained() for value in values if isinstance(value, NodeFate)]


@dataclass(frozen=True)
class Audited:
    """What Inductor made of a function or script; `folder` is a run folder, as `inductor-audit report` reads it."""

    folder: Path

    @cached_property
    def run(self) -> Run:
        """The run as it was read."""
        return load_run(self.folder)

    @cached_property
    def graphs(self) -> tuple[GraphFacts, ...]:
        """The facts about every compiled graph, in order."""
        return tuple(analyze(graph) for graph in self.run.graphs)

    @property
    def graph(self) -> GraphFacts:
        """The facts about the only graph. UsageError when there are several: then choose from `graphs`."""
        if len(self.graphs) != 1:
            names = ", ".join(facts.graph.name for facts in self.graphs)
            raise UsageError(f"there are {len(self.graphs)} graphs: {names}", "Choose one from `graphs`.")
        return self.graphs[0]

    @property
    def fates(self) -> dict[str, NodeFate]:
        """The fate of every FX node of the only graph that computes something, by name."""
        graph = self.graph
        return {fact.name: NodeFate.of(graph, fact) for fact in candidates(graph)}

    @property
    def kernels(self) -> list[str]:
        """The kernels of all graphs, each as often as it is called."""
        return [kernel.name for facts in self.graphs for kernel in facts.kernels for _ in range(kernel.calls)]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the capture itself found odd."""
        return self.run.manifest.findings if self.run.manifest is not None else ()

    def check(self, graph: str = "*", **promises: object) -> None:
        """Fails the test unless every promise is kept: `check(fused=["exp", "sum_1"], max_kernel_calls=1)`.

        Promises are the keys of a contract file. One that cannot be decided fails too.
        """
        __tracebackhide__ = True
        clauses = clauses_of(promises)
        self._assert([Contract("check", Location("<promise>", 1), clauses, graph)])

    def check_file(self, path: str | Path) -> None:
        """Fails the test unless every contract of a TOML file is kept."""
        __tracebackhide__ = True
        self._assert(parse(Path(path).read_text(encoding="utf-8"), str(path)))

    def _assert(self, contracts: Sequence[Contract]) -> None:
        __tracebackhide__ = True
        report = check(contracts, self.run, self.graphs)
        if report.outcome != Outcome.KEPT:
            told = [
                f"{clause.clause.kind} {clause.outcome}: {f'{one.graph}: ' if one.graph else ''}{one.reason}"
                for result in report.results
                for clause in result.clauses
                if clause.outcome != Outcome.KEPT
                for one in clause.telling
            ]
            raise AssertionError("\n".join([*told, f"the run is in {self.folder}"]))


@dataclass
class Auditor:
    """Call it with a function or a script. `folder` takes the runs, `cache` keeps what compilers make."""

    folder: Path
    cache: Path
    count: int = 0

    def __call__(
        self,
        target: Callable[..., object] | str | Path,
        *arguments: object,
        kwargs: Mapping[str, object] | None = None,
        compile: Mapping[str, object] | bool = True,
        backward: bool = False,
        ablations: Sequence[str] = (),
        settings: Mapping[str, object] | None = None,
        timeout: float = 600,
    ) -> Audited:
        """Capture `target(*arguments, **kwargs)` under torch.compile.

        `compile`: keyword arguments for torch.compile; False when the function compiles for itself. `backward`: call
        backward() on the sum of the results. `ablations`, `settings`: as `inductor-audit capture` has them.
        CaptureError, with the end of its output, when it fails or compiles nothing.
        """
        self.count += 1
        own = self.folder / f"capture-{self.count}"
        own.mkdir(parents=True)
        if callable(target):
            options = ({} if compile else None) if isinstance(compile, bool) else compile
            command = _calling(own, request_of(target, arguments, kwargs, options, backward))
        else:
            command = (sys.executable, str(target), *(str(argument) for argument in arguments))
        return self._captured(own, command, ablations, settings or {}, timeout)

    def _captured(
        self,
        own: Path,
        command: tuple[str, ...],
        ablations: Sequence[str],
        settings: Mapping[str, object],
        timeout: float,
    ) -> Audited:
        log = own / "output.txt"
        result = capture(
            CaptureRequest(
                command,
                ablations=tuple(ablations),
                settings=tuple((key, repr(value)) for key, value in settings.items()),
                out=own / "run",
                timeout=timeout,
                cache=self.cache,
                log=log,
            )
        )
        if result.exit_code != 0 or not result.manifest.graphs:
            why = [finding.message for finding in result.findings] or ["no graph was compiled"]
            output = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LINES:]
            raise CaptureError("\n".join([*why, *output, f"The whole output is in {log}"]))
        return Audited(result.folder)


def _calling(own: Path, request: Mapping[str, object]) -> tuple[str, ...]:
    """The command that calls a function by its name."""
    path = own / "request.json"
    path.write_text(json.dumps(request), encoding="utf-8")
    return (sys.executable, str(CALLER), str(path))
