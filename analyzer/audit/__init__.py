"""Did the ablation act? Judges two runs, from the setting's being in force down to the generated code."""

from analyzer.audit.runs import AuditResult, Citation, GraphAudit, Rung, RungName, Verdict, audit

__all__ = ["AuditResult", "Citation", "GraphAudit", "Rung", "RungName", "Verdict", "audit"]
