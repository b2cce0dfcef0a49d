"""Promises about what the compiler does, written down in TOML and checked against a run.

    [[contract]]
    name = "softmax stays one kernel"
    graph = "*inference*"
    fused = ["exp", "sum_1", "div"]
    max_kernel_calls = 1

`KINDS` lists every promise that a contract can make, `selectors.py` how items are named.
"""

from __future__ import annotations

from analyzer.contracts.evaluate import check
from analyzer.contracts.kinds import KINDS
from analyzer.contracts.records import (
    Clause,
    ClauseResult,
    Contract,
    ContractReport,
    ContractResult,
    Judgement,
    Outcome,
    Selector,
)
from analyzer.contracts.toml_file import clauses_of, parse
from analyzer.contracts.write import contracts_of_run

__all__ = [
    "KINDS",
    "Clause",
    "ClauseResult",
    "Contract",
    "ContractReport",
    "ContractResult",
    "Judgement",
    "Outcome",
    "Selector",
    "check",
    "clauses_of",
    "contracts_of_run",
    "parse",
]
