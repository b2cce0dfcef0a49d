"""Generated kernels in a form in which only what they compute counts.

Comments, includes, the kernel's own name, launch metadata and the names of intermediates go; statements of one block
count in any order, each value as the text that makes it. Pointers are what the caller says they are.
(torch/_inductor/codegen/cpp.py and triton.py write the sources.)
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import reduce

from analyzer.model import KernelDef

_COMMENT = re.compile(r"^\s*(?:#(?!pragma)|//)|^\s*$")
_TRAILING = re.compile(r"(?<!\s)\s+(?://|#(?!pragma)).*$")
_NAME = re.compile(r"[A-Za-z_]\w*")
_LOCAL = re.compile(r"\b(?:_?tmp(?:_acc)?\d+\w*|(?:[xyzi]|r\d*_?)\d+\w*|buf_local_\w+|local_buffer_\w+)\b")
_LOOP = re.compile(r"^for\s*\(\s*\w+ (?P<name>\w+)=|^for (?P<python>\w+) in ")
_COMMUTATIVE = re.compile(r"(?:^|(?<=\())(@\w+) ([+*]) (@\w+)(?=$|\))")
_PLUMBING = re.compile(r"\binductor_cpu_(?:integer_div_error|throw_if_integer_div_error)")
"""How newer versions report a division by zero; it is in every kernel and computes nothing."""
_THREADS = re.compile(r" num_threads\(\d+\)")
"""As many as the machine has, unless the setting cpp.threads says otherwise."""
_HINT = "#pragma GCC ivdep"
"""A promise to the C++ compiler about the next loop; newer versions give it to more loops."""
_SPELLINGS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b(\w+)\.template cast<([^<>]+)>\(\)"), r"inductor_vec_mask_cast<\2>(\1)"),
    (re.compile(r"static_cast<std::make_unsigned_t<\w+>>\((\w+)\)"), r"\1"),
    (re.compile(r"#pragma unroll\b"), "#pragma GCC unroll"),
    (re.compile(r"\btl\.range\("), "range("),
    (re.compile(r"\btl\.full\(\[[\w, ]*\], True, tl\.int1\)(?:\[[^\]]*\])?"), "True"),
    (re.compile(r"\btriton_helpers\.(maximum|minimum)\(([^()]*)\)"), r"tl.\1(\2, tl.PropagateNan.ALL)"),
)
"""What versions write otherwise for the same computation: as the older one wrote it, as the newer one does."""
_POINTER = re.compile(r"\b(?:in|out|in_out)_ptr\d+\b")

_DEEPEST = 200
"""Blocks deeper than this count as one."""

Line = tuple[int, str]


def canonical_kernel(kernel: KernelDef, bound: Mapping[str, str], hints: bool = True) -> Hashable:
    """Equal for kernels that do the same with the same memory; `bound` names what each parameter points to.

    `hints`: whether promises to the C++ compiler count, which compute nothing.
    """
    lines = [line for line in _lines(kernel) if hints or line[1] != _HINT]
    names = {**{param.name: param.name for param in kernel.params}, **bound}
    tree, _ = _tree(lines, 0, dict(names))
    return kernel.heuristic, tree


def readable_kernel(kernel: KernelDef) -> tuple[str, ...]:
    """The statements as lines to read side by side, intermediates and pointers numbered by first use."""
    names: dict[str, str] = {}
    return tuple("  " * depth + _numbered(text, names) for depth, text in _lines(kernel))


def hinted_loops(kernel: KernelDef) -> int:
    """Loops whose iterations the C++ compiler may take for independent."""
    return sum(text == _HINT for _, text in _lines(kernel))


def _lines(kernel: KernelDef) -> Iterator[Line]:
    cpp = kernel.backend == "cpp" or 'extern "C"' in kernel.source
    for depth, text in _cpp_lines(kernel.source) if cpp else _python_lines(kernel.source):
        yield depth, reduce(lambda line, spelling: spelling[0].sub(spelling[1], line), _SPELLINGS, text)


def _numbered(text: str, names: dict[str, str]) -> str:
    def number(match: re.Match[str]) -> str:
        stem = match[0].rstrip("0123456789")
        return names.setdefault(match[0], f"{stem}{sum(value.startswith(stem) for value in names.values())}")

    return _POINTER.sub(number, _LOCAL.sub(number, text))


def erased(kernel: KernelDef) -> Hashable:
    """The canonical kernel with every pointer alike: equal when only where memory lies differs."""
    pointers = {param.name: "ptr" for param in kernel.params if _POINTER.fullmatch(param.name)}
    return canonical_kernel(kernel, pointers)


def _cpp_lines(source: str) -> Iterator[Line]:
    """The body of the function, each statement with its depth in braces."""
    depth = 0
    _, _, body = source.partition('extern "C"')
    _, _, body = body.partition("{")
    for raw in body.splitlines():
        text = _THREADS.sub("", _TRAILING.sub("", raw.strip()))
        if not text or text.startswith("//") or _PLUMBING.search(text):
            continue
        depth -= text.startswith("}")
        if text.strip("{};"):
            yield min(max(depth, 0), _DEEPEST), text
        depth += text.count("{") - text.count("}") + text.startswith("}")


def _python_lines(source: str) -> Iterator[Line]:
    """The body of the last function, each statement with its indentation."""
    lines = source.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("def ")]
    for raw in lines[starts[-1] + 1 :] if starts else lines:
        text = _TRAILING.sub("", raw.rstrip())
        if not _COMMENT.match(text):
            yield min(len(text) - len(text.lstrip()), _DEEPEST), text.strip()


def _tree(lines: Sequence[Line], start: int, names: dict[str, str]) -> tuple[Hashable, int]:
    """The block that starts at a line, as a sorted tuple of its statements and inner blocks; and where it ends."""
    depth = lines[start][0] if start < len(lines) else 0
    found: list[str] = []
    at = start
    while at < len(lines) and lines[at][0] >= depth:
        text = _defined(*lines[at], names)
        at += 1
        if at < len(lines) and lines[at][0] > depth:
            block, at = _tree(lines, at, names)
            text = f"{text} {hash(block)}"
        found.append(text)
    return tuple(sorted(found)), at


def _defined(depth: int, text: str, names: dict[str, str]) -> str:
    """The statement with every name it uses replaced by what defines it; remembers what it defines itself."""
    loop = _LOOP.match(text)
    if loop is not None:
        variable = loop["name"] or loop["python"]
        names[variable] = "@"
        text = _known(text, names)
        names[variable] = _token((depth, text))
        return text
    head, equals, value = text.partition(" = ")
    head = head.partition(": ")[0]
    name = head.split()[-1] if equals and head.strip() else ""
    if not name.isidentifier():
        return _known(text, names)
    value = _COMMUTATIVE.sub(_in_order, _known(value.rstrip(";"), names))
    kind = head.removesuffix(name)
    names[name] = _token((value, kind))
    return f"{_known(kind, names)}= {value}"


def _token(value: Hashable) -> str:
    return f"@{hash(value) & 0xFFFF_FFFF_FFFF_FFFF:x}"


def _in_order(match: re.Match[str]) -> str:
    """Operands of a commutative operator in one order."""
    first, second = sorted((match[1], match[3]))
    return f"{first} {match[2]} {second}"


def _known(text: str, names: Mapping[str, str]) -> str:
    return _NAME.sub(lambda match: names.get(match[0], match[0]), text)
