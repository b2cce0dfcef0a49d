"""The promises that a contract can make, each with its value and its judge; the order is that of the help."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from analyzer.contracts import budgets, code, placement, whole_run
from analyzer.contracts.records import Clause, Judgement
from analyzer.contracts.scope import Scope
from analyzer.model import StrEnum

Judge = Callable[[Clause, Scope], Iterator[Judgement]]


class Takes(StrEnum):
    """What a clause's value must be."""

    ITEMS = 'a list of items, one item, or "all"'
    COUNT = "a whole number"
    BYTES = 'a size, such as 4096 or "12 MB"'
    TRUE = "true"
    KERNELS = "a table of kernel names, each with a list of items"
    BACKENDS = "a list of backends: " + ", ".join(code.BACKENDS)


@dataclass(frozen=True, slots=True)
class Kind:
    """A promise: its key in the contract file, what it takes, what it means, and who judges it.

    `of_run`: it speaks of the run, whatever graphs its contract names.
    """

    name: str
    takes: Takes
    means: str
    judge: Judge
    of_run: bool = False


KINDS = (
    Kind("fused", Takes.ITEMS, "one group computes all of these", placement.fused),
    Kind("apart", Takes.ITEMS, "no group computes two of these", placement.apart),
    Kind("realized", Takes.ITEMS, "each has a buffer of its own", placement.per_node(placement.realized)),
    Kind("never_realized", Takes.ITEMS, "none has a buffer of its own", placement.per_node(placement.never_realized)),
    Kind("never_stored", Takes.ITEMS, "none takes memory", placement.per_node(placement.never_stored)),
    Kind("not_recomputed", Takes.ITEMS, "each is computed once", placement.per_node(placement.not_recomputed)),
    Kind("attributed", Takes.ITEMS, "the fate of each is known", placement.per_node(placement.attributed)),
    Kind("kernel_computes", Takes.KERNELS, "such a kernel computes each of these", code.kernel_computes),
    Kind("never_backend", Takes.BACKENDS, "no kernel is of these backends", code.never_backend),
    Kind(
        "max_kernel_calls",
        Takes.COUNT,
        "kernel calls per graph",
        budgets.Budget("kernel calls", lambda s: s.kernel_calls),
    ),
    Kind("max_groups", Takes.COUNT, "groups after fusion per graph", budgets.Budget("groups", lambda s: s.groups)),
    Kind("max_realized", Takes.COUNT, "realized ops per graph", budgets.Budget("realized ops", lambda s: s.realized)),
    Kind(
        "max_recomputed",
        Takes.COUNT,
        "recomputed ops per graph",
        budgets.Budget("recomputed ops", lambda s: s.recomputed),
    ),
    Kind(
        "max_bytes",
        Takes.BYTES,
        "bytes read and written per graph",
        budgets.Budget("bytes moved", lambda s: s.bytes_moved),
    ),
    Kind(
        "max_allocated",
        Takes.BYTES,
        "bytes allocated per graph",
        budgets.Budget("bytes allocated", lambda s: s.allocated_bytes),
    ),
    Kind("max_graphs", Takes.COUNT, "compiled graphs", budgets.graphs_of_run, of_run=True),
    Kind("cold_cache", Takes.TRUE, "every graph was compiled in this run", whole_run.cold_cache, of_run=True),
    Kind("no_graph_breaks", Takes.TRUE, "Dynamo cut no function in two", whole_run.no_graph_breaks, of_run=True),
    Kind("no_recompiles", Takes.TRUE, "nothing was compiled twice", whole_run.no_recompiles, of_run=True),
)


def kind_of(name: str) -> Kind | None:
    """The kind of this name."""
    return next((kind for kind in KINDS if kind.name == name), None)
