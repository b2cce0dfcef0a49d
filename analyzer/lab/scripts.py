"""The scripts of a call: one with its own arguments, and any number as quoted command lines."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from analyzer.errors import UsageError
from analyzer.lab.records import Script


def parse_scripts(target: Sequence[str], more: Sequence[str], cwd: Path) -> tuple[Script, ...]:
    """The scripts that SCRIPT [ARGS]... and each `--script "SCRIPT ARGS"` name. UsageError for none and for no file."""
    words = ([tuple(target)] if target else []) + [tuple(_split(text)) for text in more]
    if not words:
        raise UsageError("no script to ablate", "Name a SCRIPT, or several with --script.")
    for script, *_ in words:
        if not (cwd / script).is_file():
            raise UsageError(f"there is no script {script!r} here")
    labels = _unique(re.sub(r"[^\w.-]", "_", Path(script).stem) or "script" for script, *_ in words)
    return tuple(Script(script, tuple(rest), label) for (script, *rest), label in zip(words, labels, strict=True))


def _split(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"cannot split {text!r}: {error}") from error
    if not words:
        raise UsageError("an empty --script")
    return words


def _unique(labels: Iterator[str]) -> Iterator[str]:
    taken: set[str] = set()
    for label in labels:
        name, number = label, 2
        while name in taken:
            name, number = f"{label}-{number}", number + 1
        taken.add(name)
        yield name
