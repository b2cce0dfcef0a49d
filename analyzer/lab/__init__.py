"""The ablation laboratory: captures a baseline and every ablated arm of a script, audits each, and measures them.

Needs scipy for times (`pip install 'inductor-audit[lab]'`); arms without times need nothing more than a capture does.
"""

from __future__ import annotations

from analyzer.lab.experiment import LabRequest, experiment
from analyzer.lab.plan import paper_rows
from analyzer.lab.records import ArmSpec, LabResult, Role, Script, ScriptResult, Status, Watcher
from analyzer.lab.run import Target
from analyzer.lab.scripts import parse_scripts

__all__ = [
    "ArmSpec",
    "LabRequest",
    "LabResult",
    "Role",
    "Script",
    "ScriptResult",
    "Status",
    "Target",
    "Watcher",
    "experiment",
    "paper_rows",
    "parse_scripts",
]
