"""Whether a printed FX graph reads whole, without its nodes: for `fx_graph_readable.py` where nothing asks for more."""

from __future__ import annotations

import re

from analyzer.artifacts.fx_graph import parse
from analyzer.artifacts.shapes import without_numbers
from analyzer.model import Artifact, artifact_of

_RETURN = re.compile(r"^ *return\b", re.MULTILINE)
# Inside `forward` it reads alike whatever its numbers are and whatever stands above it.
_ALIKE = re.compile(r" *(?:\Z|#|\w+(?:: \"[^\"]*\")? = torch\.ops\.)")
# No Python number begins so, but for an exponent.
_LEADING_ZERO = re.compile(r"0(?<![\w.]0)(?<!e[-+]0)[0-9]")


def check(text: str, source: str) -> Artifact:
    """The artifact of `parse(text, source)`. Lines that differ from one above by numbers alone are not read again."""
    sample = _sample(text)
    if sample is None or parse(sample, source).artifact.problems:
        return parse(text, source).artifact
    return artifact_of(source, text)


def _sample(text: str) -> str | None:
    """One line of each kind up to `return`, and all that follows; None where that might hide a flaw."""
    end = _RETURN.search(text)
    nested = text.count("class ") + text.count("def ") > 2
    if end is None or nested or "\t" in text or not text.isascii() or _LEADING_ZERO.search(text):
        return None
    repeats: dict[str, bool] = {}
    kept = []
    above = text[: end.start()]
    for shape, line in zip(without_numbers(above).split("\n")[:-1], above.split("\n")[:-1], strict=True):
        if not repeats.get(shape):
            kept.append(line)
            repeats[shape] = _ALIKE.match(line) is not None
    return "\n".join([*kept, text[end.start() :]])
