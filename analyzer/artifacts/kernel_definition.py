"""Where the kernels of an output code are defined, and what each one is.

Definitions are found by their own grammar, `NAME = async_compile.FACTORY(.. '''source'''..)`, not by bracket
counting: the source is foreign code. The name is the left-hand side; up to torch 2.5 Triton's inner one is `triton_`.
torch/_inductor/codegen/wrapper.py (`define_kernel`, `define_user_defined_triton_kernel`), async_compile.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from analyzer.artifacts.cpp_kernel import cpp_anatomy
from analyzer.artifacts.triton_kernel import triton_anatomy
from analyzer.model import KernelDef, Location, SourceComment

_HEAD = re.compile(r"^(?P<name>\w+) = (?:async_compile\.(?P<factory>\w+)|(?P<mps>compile_mps_shader))\(", re.MULTILINE)
_OPENING = re.compile(r"[^\n]*?(?:\n[ \t]*)?(?P<raw>[rR]?)(?P<quote>'''|\"\"\")")
_SINGLE_QUOTED = re.compile(r"'(\w+)'|\"(\w+)\"")
_NEXT = re.compile(
    r"^(?:\w+ = (?:async_compile\.\w+|compile_mps_shader)\(|async_compile\.wait|class Runner|def \w+\(args\):)",
    re.MULTILINE,
)
_CPP = ("cpp", "cpp_pybinding")


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition's place: offsets of the whole head, of the source between the quotes; `closed` if the quotes end."""

    name: str
    factory: str
    start: int
    arguments: str
    body_start: int
    body_end: int
    closed: bool


def find_definitions(text: str) -> Iterator[Definition]:
    """Yield the definitions of an output code in order."""
    position = 0
    while match := _HEAD.search(text, position):
        definition = _definition_at(text, match)
        yield definition
        position = max(definition.body_end, match.end())


def _definition_at(text: str, head: re.Match[str]) -> Definition:
    factory = head["factory"] or "mps"
    opening = _OPENING.match(text, head.end())
    if opening is None:
        line_end = text.find("\n", head.end())
        end = len(text) if line_end < 0 else line_end
        return Definition(head["name"], factory, head.start(), text[head.end() : end], end, end, True)
    following = _NEXT.search(text, opening.end())
    limit = following.start() if following else len(text)
    end = _closing_quote(text, opening.end(), limit, opening["quote"])
    body_end = limit if end < 0 else end
    arguments = text[head.end() : opening.start("quote")]
    return Definition(head["name"], factory, head.start(), arguments, opening.end(), body_end, end >= 0)


def _closing_quote(text: str, start: int, limit: int, quote: str) -> int:
    """The offset of the quotes that end a call's argument; -1 if there are none. Backslashes hide a quote."""
    position = text.find(quote, start, limit)
    while position >= 0:
        before = text[max(start, position - 64) : position]
        hidden = (len(before) - len(before.rstrip("\\"))) % 2
        if not hidden and text[position + 3 : position + 40].lstrip()[:1] in (")", ","):
            return position
        position = text.find(quote, position + 3, limit)
    return -1


def kernel_of(definition: Definition, text: str, comment: SourceComment, location: Location) -> KernelDef:
    """The record of a definition; sources of factories that nobody knows are kept unread."""
    source = text[definition.body_start : definition.body_end]
    if definition.factory in _CPP:
        return cpp_kernel(definition.name, source, location)
    if definition.factory == "triton":
        return _triton_kernel(definition, source, comment, location)
    meta = (("factory", definition.factory), ("arguments", definition.arguments.strip()))
    return KernelDef(definition.name, "other", comment=comment, meta=meta, source=source, location=location)


def cpp_kernel(name: str, source: str, location: Location) -> KernelDef:
    """The record of a C++ kernel from the text of its translation unit."""
    anatomy = cpp_anatomy(source)
    return KernelDef(
        name=name,
        backend="template" if anatomy.is_template else "cpp",
        params=anatomy.params,
        loop_nests=anatomy.loop_nests,
        vector_uses=anatomy.vector_uses,
        local_buffers=anatomy.local_buffers,
        source=source,
        location=location,
    )


def _triton_kernel(definition: Definition, source: str, comment: SourceComment, location: Location) -> KernelDef:
    inner = _SINGLE_QUOTED.match(definition.arguments)
    names = (definition.name,) + ((inner[1] or inner[2],) if inner else ())
    anatomy = triton_anatomy(source, names)
    return KernelDef(
        name=definition.name,
        backend="template" if anatomy.heuristic == "template" else "triton",
        params=anatomy.params,
        comment=comment,
        heuristic=anatomy.heuristic,
        meta=anatomy.meta,
        source=source,
        location=location,
    )
