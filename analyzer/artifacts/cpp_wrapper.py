"""C++ wrappers: a Python file that holds one as a string (`cpp_wrapper`), or AOTInductor's `output_code.cpp`.

Only three things are read: the kernels' functions, the entry function, the constants' table; the rest is a fixed
runtime. torch/_inductor/codegen/cpp_wrapper_cpu.py, cpp_wrapper_gpu.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from analyzer.artifacts import rare
from analyzer.artifacts.cpp_kernel import HEAD, cpp_params, matching
from analyzer.artifacts.kernel_definition import cpp_kernel
from analyzer.artifacts.triton_kernel import triton_anatomy
from analyzer.model import KernelDef, Layout, Location, OutputCode, Problem, artifact_of

if TYPE_CHECKING:
    from analyzer.artifacts.cpp_statements import EntryReader

_EMBEDDED = re.compile(r"^cpp_wrapper_src = \(?\s*[rR]?(?P<quote>'''|\"\"\")", re.MULTILINE)
_RUNTIME = re.compile(r"^#include <torch/csrc/inductor/aoti_(?:include/|runtime/interface)", re.MULTILINE)
_ENTRY = re.compile(
    r"^(?:void (?:inductor_entry_impl|AOTInductorModel::run_impl)|std::vector<at::Tensor> inductor_entry_cpp)\(", re.M
)
_DEVICE_CALL = re.compile(r"^static (?:inline |__attribute__\(\(noinline\)\) )*void call_(?P<name>\w+)\(", re.MULTILINE)
_EMBEDDED_SOURCE = re.compile(r"/\*\n(?P<source>.*?)\*/", re.DOTALL)
_RUNTIME_PARAMS = {"device_idx_", "stream_", "kernels_", "cubin_dir_"}
_LOADED = re.compile(r'\bloadKernel\([^;]*?"(?P<name>\w+)"')
_CONSTANT = re.compile(
    r'^\s*constants_info_\[(?P<index>\d+)\]\.(?P<field>name|original_fqn) = "(?P<text>[^"]*)";', re.M
)
_BODY = re.compile(r"\s*(?:noexcept\s*)?\{")


def recognizes(text: str) -> bool:
    """Whether a text is a C++ wrapper, bare or inside Python."""
    return bool(_EMBEDDED.search(text) or _RUNTIME.search(text) or _ENTRY.search(text))


def parse(text: str, source: str, input_layouts: Mapping[str, Layout], aot_id: str | None) -> OutputCode:
    """Read a C++ wrapper; locations count in the whole file, Python around the string included."""
    start, end, problems = _code_span(text, source)
    kernels = _kernels(text, start, end, source)
    entry = _ENTRY.search(text, start, end)
    reader = rare.cpp_entry_reader(source, {kernel.name: kernel for kernel in kernels}, set(_constants(text)))
    if entry is None:
        problems.append(_missing_entry(text, source, end))
    else:
        problems += _read_entry(reader, text, entry, end)
    return OutputCode(
        artifact=artifact_of(source, text, tuple(sorted(problems, key=lambda problem: problem.location))),
        language="cpp_wrapper" if start else "aoti",
        aot_id=aot_id,
        kernels=tuple(kernels),
        steps=tuple(reader.steps),
        inputs=tuple(name for _, name in sorted(reader.inputs.items())),
        input_layouts=input_layouts,
        returns=tuple(reader.returns.get(index) for index in range(max(reader.returns, default=-1) + 1)),
        constants=_constants(text),
    )


def _code_span(text: str, source: str) -> tuple[int, int, list[Problem]]:
    """Offsets of the C++ text; a string without an end reaches to the end of the file."""
    opening = _EMBEDDED.search(text)
    if opening is None:
        return 0, len(text), []
    end = text.find(f"\n{opening['quote']}\n", opening.end())
    if end >= 0:
        return opening.end(), end, []
    location = Location(source, _line(text, opening.end()), opening.end() - text.rfind("\n", 0, opening.end()))
    return opening.end(), len(text), [Problem(location, "expected quotes that end the C++ source", opening[0])]


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def _missing_entry(text: str, source: str, end: int) -> Problem:
    return Problem(
        Location(source, _line(text, len(text[:end].rstrip()))),
        "expected an entry function, `inductor_entry_impl` or `AOTInductorModel::run_impl`",
    )


def _kernels(text: str, start: int, end: int, source: str) -> list[KernelDef]:
    """C++ kernels with a body (2.9 and later declare them first), then the device kernels that the code launches."""
    found: dict[str, KernelDef] = {}
    for head, limit in _with_limits(HEAD, text, start, end):
        params_end = matching(text, head.end() - 1, limit)
        body = _BODY.match(text, params_end)
        if body:
            code = text[head.start() : matching(text, body.end() - 1, limit)]
            found[head["name"]] = cpp_kernel(head["name"], code, Location(source, _line(text, head.start())))
    for head, limit in _with_limits(_DEVICE_CALL, text, start, end):
        found.setdefault(head["name"], _device_kernel(text, head, limit, source))
    for load in _LOADED.finditer(text, start, end):
        location = Location(source, _line(text, load.start()))
        found.setdefault(load["name"], KernelDef(load["name"], "triton", location=location))
    return list(found.values())


def _with_limits(pattern: re.Pattern[str], text: str, start: int, end: int) -> Iterator[tuple[re.Match[str], int]]:
    """Matches with the start of the next one: no function reaches into another, however broken its brackets are."""
    heads = list(pattern.finditer(text, start, end))
    yield from zip(heads, [*(head.start() for head in heads[1:]), end], strict=False)


def _device_kernel(text: str, head: re.Match[str], limit: int, source: str) -> KernelDef:
    """The function `call_K` that launches a Triton kernel; a comment in it may hold the kernel's source."""
    params_end = matching(text, head.end() - 1, limit)
    body = _BODY.match(text, params_end)
    end = _end_of_function(text, body.end(), limit) if body else params_end
    embedded = _EMBEDDED_SOURCE.search(text, params_end, end)
    code = embedded["source"] if embedded else ""
    anatomy = triton_anatomy(code, (head["name"], "triton_"))
    params = cpp_params(text[head.end() : params_end - 1])
    return KernelDef(
        name=head["name"],
        backend="template" if anatomy.heuristic == "template" else "triton",
        params=tuple(param for param in params if param.name not in _RUNTIME_PARAMS),
        heuristic=anatomy.heuristic,
        meta=anatomy.meta,
        source=code,
        location=Location(source, _line(text, head.start())),
    )


def _end_of_function(text: str, start: int, limit: int) -> int:
    """Where a function at namespace level ends: a brace at column 0."""
    end = text.find("\n}", start, limit)
    return limit if end < 0 else end


def _constants(text: str) -> dict[str, str]:
    """Names of constants → the parameter's name in the model."""
    rows: dict[int, dict[str, str]] = {}
    for match in _CONSTANT.finditer(text):
        rows.setdefault(int(match["index"]), {})[match["field"]] = match["text"]
    return {row["name"]: row.get("original_fqn", "") for row in rows.values() if "name" in row}


def _read_entry(reader: EntryReader, text: str, entry: re.Match[str], end: int) -> list[Problem]:
    """Walk the entry function's body line by line."""
    params_end = matching(text, entry.end() - 1)
    body = _BODY.match(text, params_end)
    if body is None or params_end > end:
        location = Location(reader.file, _line(text, entry.start()))
        return [Problem(location, "expected the body of the entry function", entry[0])]
    stop = matching(text, body.end() - 1)
    closed = stop <= end and text[stop - 1] == "}"
    lines = text[body.end() : stop - 1 if closed else end].split("\n")
    first = _line(text, body.end())
    reader.read(lines, first)
    if closed:
        return reader.problems
    last = Location(reader.file, _line(text, len(text[:end].rstrip())))
    return [*reader.problems, Problem(last, "expected the entry function to end before the end of the file")]
