"""What a report is compared with, each as the command line of a whole process."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.measure import ROOT
from tests.benchmarks.runs import DumpFiles

_PLAIN = (
    "import sys; from analyzer.artifacts.ir_dump import parse_plain\n"
    "for p in sys.argv[1:]: parse_plain(open(p).read(), p)"
)
_REGEX = (
    "import re, sys; word = re.compile(rb'[A-Za-z_]\\w*')\n"
    "for p in sys.argv[1:]: sum(1 for _ in word.finditer(open(p, 'rb').read()))"
)
_NO_LOG = "skipped: torch before 2.13 writes no trace log"
_NO_TLPARSE = "skipped: not installed (pip install tlparse)"


def report(files: DumpFiles) -> list[str]:
    return [sys.executable, str(ROOT / "cli.py"), "report", str(files.run), "--json"]


def rivals(files: DumpFiles) -> Iterator[tuple[str, list[str] | str]]:
    """A name, and a command or why there is none."""
    yield "plain parse of the IR dumps alone", [sys.executable, "-c", _PLAIN, *map(str, files.dumps)]
    yield "a regex over every word of the artifacts", [sys.executable, "-c", _REGEX, *map(str, files.artifacts)]
    yield "tlparse on the trace log", _tlparse(files)


def _tlparse(files: DumpFiles) -> list[str] | str:
    beside = Path(sys.executable).with_name("tlparse")
    found = str(beside) if beside.exists() else shutil.which("tlparse")
    if found is None:
        return _NO_TLPARSE
    if files.log is None:
        return _NO_LOG
    return [found, str(files.log), "-o", tempfile.mkdtemp(), "--overwrite", "--no-browser"]
