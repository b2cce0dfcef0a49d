"""A pytest fixture: compile a function in a fresh process, and assert on what Inductor made of it.

    def layer(x):
        return torch.sin(torch.cos(x))

    def test_layer_stays_one_kernel(inductor_audit):
        result = inductor_audit(layer, torch.randn(1000))
        assert result.fates["cos"] == "inlined"
        result.check(fused=["cos", "sin"], max_kernel_calls=1)

Limits: the function must be at the top of a module (it is imported anew, by name), its arguments literals or strided
tensors. Tensors travel without their values. Every call is a cold compile in a process of its own: seconds, not
milliseconds. A script runs as a whole instead: `inductor_audit("train.py", "--epochs", "1")`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from analyzer.testing.auditor import Auditor


@pytest.fixture(scope="session")
def _inductor_audit_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled kernels of the session; graphs themselves are always compiled anew."""
    return tmp_path_factory.mktemp("inductor-audit-cache")


@pytest.fixture
def inductor_audit(tmp_path: Path, _inductor_audit_cache: Path) -> Auditor:
    """Compile a function or script in a fresh process and tell what Inductor made of it; see `analyzer.testing`."""
    from analyzer.testing.auditor import Auditor

    return Auditor(tmp_path / "inductor-audit", _inductor_audit_cache)


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """A failing assertion about a fate says in which kernel and why, too."""
    auditor = sys.modules.get("analyzer.testing.auditor")
    told = auditor.explained(left, right) if auditor is not None else []
    return [f"{left!r} {op} {right!r}", *told] if told else None
