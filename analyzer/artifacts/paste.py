"""Cleaning of pasted text: what terminals, logs, issue trackers and editors put around an artifact's lines.

Nothing here changes the count of lines, so line numbers stay those of the pasted text.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field

_MARKS = (".py:", "fusion]", "[__", " FUSION", "\n#", "\n>", "```", "&#")
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b[@-Z\\^_]")
_QUOTE = re.compile(r"(?:> ?)*(?:# ?)?")
_TAG = re.compile(r"[^\n]{0,400}?\[__(\w+)\] ?")
_CUT_TAG = re.compile(r"\[?(\w{0,20}fusion(?:_pretty)?)\] ?")
_LOG_PREFIX = re.compile(r"[^\n]{0,300}?\.py:\d+\] ?(?:\[\d+/[\d_]+\] ?)?")
_BANNER = re.compile(r"\s*(BEFORE|AFTER) FUSION\s*$")
_BANNER_KIND = {"BEFORE": "pre", "AFTER": "post"}
_ODD_BLANKS = str.maketrans({"\xa0": " ", "\u2007": " ", "\u202f": " ", "\ufeff": None, "\u200b": None})


@dataclass(slots=True)
class PastedDump:
    """One IR dump of a pasted text; `kind` is pre or post, None where neither tag nor banner says.

    `first_line` is where it begins in the whole text.
    """

    kind: str | None = None
    first_line: int = 1
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Its lines, after as many empty ones as it takes to keep their numbers."""
        return "\n" * (self.first_line - 1) + "\n".join(self.lines)


def clean(text: str) -> str:
    """The first IR dump in a text, without colours, carriage returns, log prefixes, quote marks, banners and fences."""
    return choose(clean_dumps(text)).text if needs_cleaning(text) else text


def choose(dumps: tuple[PastedDump, ...], kind: str | None = None) -> PastedDump:
    """The first dump of a kind (pre or post), else the first that has a kind at all, else the first."""
    titled = [dump for dump in dumps if dump.kind]
    return next((dump for dump in titled if dump.kind == kind), (titled or dumps)[0])


def needs_cleaning(text: str) -> bool:
    """Whether the text has anything that `clean` would take away."""
    return holds_controls(text) or text.startswith(("#", ">")) or any(mark in text for mark in _MARKS)


def holds_controls(text: str) -> bool:
    """Whether there are characters that Inductor hardly writes; what else needs cleaning fails to parse anyway."""
    return not text.isascii() or "\x1b" in text or "\r" in text or "#" in text


def clean_dumps(text: str) -> tuple[PastedDump, ...]:
    """Every IR dump in a text (a log holds pre and post of every graph), split at banners and where the tag changes."""
    dumps = [PastedDump()]
    for number, line in enumerate(_plain_characters(text).split("\n"), start=1):
        kind, content = _unwrap(line)
        banner = _BANNER.match(content)
        kind = _BANNER_KIND[banner[1]] if banner else kind
        if banner or (kind and dumps[-1].kind and kind != dumps[-1].kind):
            _begin(dumps, number)
        dumps[-1].kind = dumps[-1].kind or kind
        dumps[-1].lines.append("" if banner else content)
    return tuple(dumps)


def original_column(original: str, cleaned: str, column: int) -> int:
    """Where a column of a cleaned line lies in the line as it was pasted."""
    shift = original.find(cleaned) if cleaned else -1
    return column + max(shift, 0)


def _begin(dumps: list[PastedDump], number: int) -> None:
    """Start a dump at this line, unless the one before has nothing yet."""
    if any(line.strip() for line in dumps[-1].lines):
        dumps.append(PastedDump(first_line=number))
    else:
        dumps[-1].kind = None


def lines_of(text: str) -> list[str]:
    """The lines of a pasted text, whatever ends them, as `clean` counts them."""
    return _line_ends(text).split("\n")


def _line_ends(text: str) -> str:
    text = text.replace("\r\n", "\n")
    return text.replace("\r", "" if "\n" in text else "\n")


def _plain_characters(text: str) -> str:
    text = _line_ends(text)
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if not text.isascii():
        text = text.translate(_ODD_BLANKS)
    return text


def _unwrap(line: str) -> tuple[str | None, str]:
    """The line without what stands around it, and which dump its log tag says it belongs to."""
    line = line[_quote_end(line) :]
    if line.startswith("```"):
        return None, ""
    if "&#" in line:
        line = html.unescape(line)
    tag = _TAG.match(line) or _CUT_TAG.match(line)
    if tag is None:
        prefix = _LOG_PREFIX.match(line) if ".py:" in line else None
        return None, line[prefix.end() :] if prefix else line
    if "fusion" not in tag[1] or tag[1] == "fusion":
        return None, "" if tag.re is _TAG else line[tag.end() :]
    kind = next((kind for kind in ("pre", "post") if f"{kind}_" in tag[1]), None)
    return kind, line[tag.end() :]


def _quote_end(line: str) -> int:
    match = _QUOTE.match(line)
    return match.end() if match else 0
