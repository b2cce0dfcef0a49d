"""From a template and its data to one file: style and script inlined, text escaped, everything else forbidden.

All text from artifacts passes through here. Jinja2 escapes what is markup, `plain` spells out what would hide or
reorder text, and the page's own policy lets a browser run only the one script whose hash it states: even text that
slipped through could neither run nor load anything.
"""

from __future__ import annotations

import json
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from analyzer.views.text import byte_text, counted, plain, shortened


def render(template: str, **data: object) -> str:
    """The page that a template makes of its data."""
    style, script = _own("page.css"), _own("page.js")
    return (
        _environment()
        .get_template(template)
        .render(
            style=Markup(style),  # noqa: S704 - our own file, no artifact's text
            script=Markup(script),  # noqa: S704
            policy=_policy(style, script),
            version=_version(),
            **data,
        )
    )


def embedded(data: object) -> Markup:
    """JSON for a data block of a page: `<`, `>` and `&` are spelled out, so that no text in it can end the block."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Markup(text)  # noqa: S704 - no character is left that HTML knows


def code_text(text: str) -> str:
    """Program text with its line ends and indents, all else harmless."""
    return "\n".join(plain(line.expandtabs(4)) for line in text.splitlines())


def _policy(style: str, script: str) -> str:
    """Forbids everything but the page's own style and script, known by their hashes."""
    allowed = f"style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode("utf-8")).digest()).decode("ascii")


@cache
def _own(name: str) -> str:
    return (files("analyzer.views.html") / "templates" / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("analyzer.views.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_harmless,
    )
    environment.filters.update(bytes=byte_text, short=shortened, counted=counted, code=_code, ticks=_ticks)
    return environment


def _harmless(value: Any) -> Any:
    """What every expression of a template prints."""
    return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _code(text: str) -> Markup:
    return Markup.escape(code_text(text))


def _ticks(text: str) -> Markup:
    """A sentence in which `code` stands between backticks."""
    parts = [str(Markup.escape(plain(part))) for part in text.split("`")]
    if len(parts) % 2 == 0:
        return Markup.escape(plain(text))
    told = (f"<code>{part}</code>" if at % 2 else part for at, part in enumerate(parts))
    return Markup("".join(told))  # noqa: S704 - every part is escaped


def _version() -> str:
    try:
        return version("inductor-audit")
    except PackageNotFoundError:
        return ""
