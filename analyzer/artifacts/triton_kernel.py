"""The anatomy of a Triton kernel's source (torch/_inductor/codegen/triton.py, select_algorithm.py)."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import lru_cache

from analyzer.artifacts.python_source import parse_quietly
from analyzer.model import KernelParam

_HEURISTIC = re.compile(
    r"^@triton_heuristics\.(\w+)\(|^@(pointwise|reduction|persistent_reduction|template)\(", re.MULTILINE
)
_FUNCTION = re.compile(r"^def (\w+)\(", re.MULTILINE)
_META = re.compile(r"\binductor_meta\s*=\s*(?=\{)")
_SIGNATURE = re.compile(r"['\"]signature['\"]\s*:\s*(?=\{)")
_TOKEN = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"|[\[({})\]]")
_MAX_META = 200_000


@dataclass(frozen=True, slots=True)
class TritonAnatomy:
    """What a Triton kernel's text shows; `heuristic` is None for text without a decorator of Inductor's."""

    params: tuple[KernelParam, ...] = ()
    heuristic: str | None = None
    meta: tuple[tuple[str, str], ...] = ()


@lru_cache(maxsize=512)
def triton_anatomy(source: str, names: tuple[str, ...]) -> TritonAnatomy:
    """Read the jit function called one of `names`, else the last one: helper functions stand before the kernel."""
    heuristic = _HEURISTIC.search(source)
    return TritonAnatomy(
        params=_params(source, names),
        heuristic=(heuristic[1] or heuristic[2]) if heuristic else None,
        meta=_dict_after(_META, source),
    )


def _params(source: str, names: tuple[str, ...]) -> tuple[KernelParam, ...]:
    functions = list(_FUNCTION.finditer(source))
    named = [function for function in functions if function[1] in names]
    if not functions:
        return ()
    chosen = (named or functions)[-1]
    header = source[chosen.start() : _closing(source, chosen.end() - 1)]
    return _typed(_arguments(header), dict(_dict_after(_SIGNATURE, source)))


def _arguments(header: str) -> list[tuple[str, str]]:
    """The parameters of `def name(..)` with their annotations; a header that is no Python has none."""
    try:
        function = parse_quietly(f"{header}: pass")[0]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    if not isinstance(function, ast.FunctionDef):
        return []
    return [(arg.arg, ast.unparse(arg.annotation) if arg.annotation else "") for arg in function.args.args]


def _typed(arguments: list[tuple[str, str]], signature: dict[str, str]) -> tuple[KernelParam, ...]:
    """Types come from the launch signature, keyed by name, or by position up to torch 2.5."""
    return tuple(
        KernelParam(name, annotation.removeprefix("tl.") or signature.get(name) or signature.get(str(index)) or "")
        for index, (name, annotation) in enumerate(arguments)
    )


def _closing(text: str, start: int) -> int:
    """The offset behind the bracket that closes the one at `start`; `start` when nothing does."""
    depth = 0
    for token in _TOKEN.finditer(text, start, start + _MAX_META):
        if token[0] in "[({":
            depth += 1
        elif token[0] in "])}":
            depth -= 1
            if depth == 0:
                return token.end()
    return start


def _dict_after(label: re.Pattern[str], source: str) -> tuple[tuple[str, str], ...]:
    """The entries of the dict literal behind a label, as source texts, strings without quotes; nothing is evaluated."""
    match = label.search(source)
    if match is None:
        return ()
    text = source[match.end() : _closing(source, match.end())]
    try:
        statement = parse_quietly(text.strip())[0] if text.strip() else None
        return _entries(statement.value) if isinstance(statement, ast.Expr) else ()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()


def _entries(literal: ast.expr) -> tuple[tuple[str, str], ...]:
    if not isinstance(literal, ast.Dict):
        return ()
    pairs = zip(literal.keys, literal.values, strict=True)
    return tuple((str(key.value), _plain(value)) for key, value in pairs if isinstance(key, ast.Constant))


def _plain(value: ast.expr) -> str:
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ast.unparse(value)
