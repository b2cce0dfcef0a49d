"""The anatomy of a generated C++ function (torch/_inductor/codegen/cpp.py, cpp_template_kernel.py)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from analyzer.model import KernelParam

# `extern "C"  void  kernel(`; on Windows `extern "C" __declspec(dllexport) void kernel(`.
HEAD = re.compile(r'^extern\s+"C"\s+(?:__declspec\(dllexport\)\s+)?void\s+(?P<name>\w+)\s*\(', re.MULTILINE)
_PREAMBLE = re.compile(r"^\s*(?:#.*|//.*)?$|^(?:using|typedef)\b.*;$")
_LOCAL = re.compile(r"\bmake_unique<[^<>()]*\[\]>\(|\bscratch_malloc\(")
_SKIPPED = r'//[^\n]*|/\*.*?\*/|^[ \t]*#[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\''
_TOKEN = re.compile(rf"{_SKIPPED}|\b(?:for|while)\b(?=\s*\()|[(){{}};]", re.MULTILINE | re.DOTALL)
_PARAM = re.compile(r"(?P<type>.*?[\s*&])(?P<name>\w+)(?:\s*\[\])?$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CppAnatomy:
    """What a C++ kernel's text shows; `is_template`: a hand-written template (GEMM, flex attention) made it."""

    params: tuple[KernelParam, ...] = ()
    loop_nests: int | None = None
    vector_uses: int = 0
    local_buffers: int = 0
    is_template: bool = False


@lru_cache(maxsize=512)
def cpp_anatomy(source: str) -> CppAnatomy:
    """Read the function that `extern "C"` exports; without one only the counts are known."""
    head = HEAD.search(source)
    vectors = source.count("at::vec")
    if head is None:
        return CppAnatomy(vector_uses=vectors)
    close = matching(source, head.end() - 1)
    body = source[close:]
    return CppAnatomy(
        params=cpp_params(source[head.end() : close - 1]),
        loop_nests=_outermost_loops(body),
        vector_uses=vectors,
        local_buffers=len(_LOCAL.findall(body)),
        is_template=_has_helpers(source[: head.start()]),
    )


def _has_helpers(preamble: str) -> bool:
    """A loop kernel has only includes before its function; a template brings functions of its own."""
    return any(not _PREAMBLE.match(line) for line in preamble.split("\n"))


def cpp_params(text: str) -> tuple[KernelParam, ...]:
    """`const float* in_ptr0, float* out_ptr0` as records."""
    found = (_PARAM.match(part.strip()) for part in split_top_level(text))
    return tuple(KernelParam(m["name"], " ".join(m["type"].split())) for m in found if m)


def matching(text: str, start: int, limit: int | None = None) -> int:
    """The offset behind the bracket that closes the one at `start`; `limit` (the text's end) when nothing does."""
    limit = len(text) if limit is None else limit
    depth = 0
    for token in _TOKEN.finditer(text, start, limit):
        if token[0] in ("(", "{"):
            depth += 1
        elif token[0] in (")", "}"):
            depth -= 1
            if depth <= 0:
                return token.end()
    return limit


_SPLIT = re.compile(r'"(?:[^"\\]|\\.)*"|->|[\[({<>})\],]')


def split_top_level(text: str) -> list[str]:
    """Split at commas that are inside no bracket, template argument list or string."""
    parts, depth, start = [], 0, 0
    for token in _SPLIT.finditer(text):
        if token[0] in "[({<":
            depth += 1
        elif token[0] in "])}>":
            depth -= 1
        elif token[0] == "," and depth <= 0:
            parts.append(text[start : token.start()])
            start = token.end()
    tail = text[start:]
    return [*parts, tail] if tail.strip() else parts


def _outermost_loops(body: str) -> int:
    """Count loops that are inside no other loop; a bare `{ }` block is none, nor is a loop's own header."""
    loops, in_loop, blocks, parens, pending = 0, 0, list[bool](), 0, False
    for token in _TOKEN.finditer(body):
        mark = token[0]
        if mark in ("for", "while"):
            loops += not in_loop and not pending
            pending = True
        elif mark in ("(", ")"):
            parens += 1 if mark == "(" else -1
        elif parens > 0 and mark == ";":
            continue
        elif mark == "{":
            blocks.append(pending)
            in_loop += pending
            pending = False
        elif mark == "}":
            in_loop -= blocks.pop() if blocks else False
        elif mark == ";":
            pending = False
    return loops
