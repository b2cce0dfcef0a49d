"""What few runs need, imported when it is met: to define its records and patterns takes longer than to read a dump."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analyzer.artifacts.cpp_statements import EntryReader
    from analyzer.artifacts.deviceless import Deviceless
    from analyzer.artifacts.manifest import Manifest
    from analyzer.artifacts.ptx import PtxEstimates
    from analyzer.artifacts.sidecar import Sidecar
    from analyzer.model import KernelDef

SIDECAR, DEVICELESS, PTX = "inductor_audit.json", "deviceless.json", "ptx.json"
"""The names of files that only captures write."""


def sidecar(text: str, source: str) -> Sidecar:
    """See sidecar.py."""
    from analyzer.artifacts.sidecar import parse

    return parse(text, source)


def deviceless(text: str, source: str) -> Deviceless:
    """See deviceless.py."""
    from analyzer.artifacts.deviceless import parse

    return parse(text, source)


def ptx(text: str, source: str) -> PtxEstimates:
    """See ptx.py."""
    from analyzer.artifacts.ptx import parse

    return parse(text, source)


def manifest(text: str, source: str) -> Manifest:
    """See manifest.py."""
    from analyzer.artifacts.manifest import parse

    return parse(text, source)


def cpp_entry_reader(file: str, kernels: Mapping[str, KernelDef], constants: set[str]) -> EntryReader:
    """See cpp_statements.py."""
    from analyzer.artifacts.cpp_statements import EntryReader

    return EntryReader(file, kernels, constants)
