"""`output_code.py` and `output_code.cpp`: kernel definitions and what the wrapper does, in execution order.

Python goes through `ast`, comment lines through a grammar, C++ wrappers through `cpp_wrapper`. Nothing is executed.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from dataclasses import dataclass

from analyzer.artifacts import cpp_wrapper
from analyzer.artifacts.kernel_comment import CommentBlock, excerpt_of, read_comment
from analyzer.artifacts.kernel_definition import Definition, find_definitions, kernel_of
from analyzer.artifacts.python_source import PythonSource, parse_python
from analyzer.artifacts.wrapper_steps import WrapperReader
from analyzer.model import Artifact, ArtifactState, KernelDef, Layout, Location, OutputCode, Problem, artifact_of

MAX_SIZE = 64 * 2**20
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_CODE = re.compile(
    r"^def call\(|^    def call\(self|async_compile\.|AsyncCompile|^def partition_\d|compile_mps_shader", re.M
)
_BENCHMARK = re.compile(r"^def (?:get_args|benchmark_compiled_module)\(", re.MULTILINE)
_AFTER_BENCHMARK = re.compile(r"^(?!def (?:get_args|benchmark_compiled_module)\(|if __name__\b|#)\S.*", re.MULTILINE)
_INPUT = re.compile(
    r"^ +(?P<name>\w+) = (?P<text>rand_strided\(\((?P<size>[^\n]*?)\), \((?P<stride>[^\n]*?)\), "
    r"device='(?P<device>[\w:]+)', dtype=(?P<dtype>[\w.]+)\))",
    re.MULTILINE,
)
_CONSTANT = re.compile(r"^(?P<name>\w+) = None(?:  # (?P<text>.*))?$", re.MULTILINE)
# A check with a comment above stays: it is what the comment is about.
_CHECK = re.compile(
    r"^(?P<comment>[ \t]*#[^\n]*\n\s*)?[ \t]+assert_size_stride\(\w+, \([0-9, ]*\), \([0-9, ]*\)(?:, 'input')?\)$", re.M
)
_AOT_ID = re.compile(r"^(?:#|//) AOT ID: .*", re.MULTILINE)
_PARTITION = re.compile(r"partition_\d+$")
_TOO_LARGE = f"larger than {MAX_SIZE // 2**20} MB"
_NO_CODE = "no Inductor output code: neither a kernel definition nor a `call` function"


def parse(text: str, source: str) -> OutputCode:
    """Read one output code; `source` is the name that locations show. Never raises for bad text."""
    if len(text) > MAX_SIZE:
        return OutputCode(Artifact(source, ArtifactState.UNSUPPORTED, cause=_TOO_LARGE))
    clean = _ANSI.sub("", text.replace("\r\n", "\n"))
    if not clean.strip():
        return OutputCode(artifact_of(source, clean))
    if cpp_wrapper.recognizes(clean):
        return cpp_wrapper.parse(clean, source, _input_layouts(clean), _aot_id(clean)[0])
    if not _CODE.search(clean):
        return _unsupported(clean, source)
    breaks = [match.start() for match in re.finditer("\n", clean)]
    return _Reader(clean, source, breaks).read()


def _unsupported(text: str, source: str) -> OutputCode:
    lines = text.split("\n")
    first = next(number for number, line in enumerate(lines, 1) if line.strip())
    count = sum(1 for line in lines if line.strip())
    problem = Problem(Location(source, first), f"expected {_NO_CODE[3:]}", excerpt_of(lines[first - 1]), count)
    return OutputCode(Artifact(source, ArtifactState.UNSUPPORTED, len(text.splitlines()), (problem,), _NO_CODE))


def _aot_id(text: str) -> tuple[str | None, int, CommentBlock]:
    match = _AOT_ID.search(text)
    if match is None:
        return None, 0, CommentBlock()
    block = read_comment([match[0]])
    return block.aot_id, text.count("\n", 0, match.start()) + 1, block


def _input_layouts(text: str) -> dict[str, Layout]:
    """The inputs' layouts as the benchmark code makes them; equal lines of both benchmark functions fall together."""
    return {match["name"]: _layout(match) for match in _INPUT.finditer(text)}


def _layout(match: re.Match[str]) -> Layout:
    return Layout(
        kind="rand_strided",
        text=match["text"],
        device=match["device"],
        dtype=match["dtype"],
        size=_sizes(match["size"]),
        stride=_sizes(match["stride"]),
    )


def _sizes(text: str) -> tuple[int | str, ...]:
    parts = (part.strip() for part in text.split(","))
    return tuple(int(part) if part.isdecimal() and len(part) < 19 else part for part in parts if part)


@dataclass(slots=True)
class _Reader:
    """One Python output code while it is read."""

    text: str
    file: str
    breaks: list[int]

    def read(self) -> OutputCode:
        problems: list[Problem] = []
        definitions = list(find_definitions(self.text))
        kernels = [self._kernel(definition, problems) for definition in definitions]
        benchmark = _BENCHMARK.search(self.text, definitions[-1].body_end if definitions else 0)
        end = benchmark.start() if benchmark else len(self.text)
        source = _parsed(self._without_kernels(definitions, end))
        aot_id = self._read_aot_id(problems)
        functions = _functions(source.body)
        wrapper = WrapperReader(source, {kernel.name: kernel for kernel in kernels}, functions, self.file).read()
        problems += self._python_problems(source) + wrapper.problems + self._strays(source, end)
        problems += self._cut_off(functions, source)
        return OutputCode(
            artifact=artifact_of(self.file, self.text, tuple(sorted(problems, key=lambda problem: problem.location))),
            aot_id=aot_id,
            kernels=tuple(kernels),
            steps=tuple(wrapper.steps),
            inputs=wrapper.inputs,
            input_layouts=_input_layouts(self.text[end:]),
            returns=wrapper.returns,
            constants={match["name"]: match["text"] or "" for match in _CONSTANT.finditer(self.text, 0, end)},
            partitions=sum(1 for name in functions if _PARTITION.match(name)),
        )

    def _line(self, offset: int) -> int:
        return bisect_left(self.breaks, offset) + 1

    def _excerpt(self, offset: int) -> str:
        return self.text[self.text.rfind("\n", 0, offset) + 1 :].split("\n", 1)[0]

    def _kernel(self, definition: Definition, problems: list[Problem]) -> KernelDef:
        line = self._line(definition.start)
        if not definition.closed:
            place = Location(self.file, line, definition.body_start - definition.start + 1)
            lost = self._line(definition.body_end) - line
            message = "expected quotes that end the kernel's source, and `)`"
            problems.append(Problem(place, message, excerpt_of(self._excerpt(definition.start)), max(lost, 1)))
        comment = self._comment_above(definition.start, line, problems)
        return kernel_of(definition, self.text, comment.comment, Location(self.file, line))

    def _comment_above(self, offset: int, line: int, problems: list[Problem]) -> CommentBlock:
        """The comment lines directly above an offset at the start of a line."""
        start = offset
        while start > 0 and self.text.startswith("#", self.text.rfind("\n", 0, start - 1) + 1):
            start = self.text.rfind("\n", 0, start - 1) + 1
        if start == offset:
            return CommentBlock()
        lines = self.text[start : offset - 1].split("\n")
        block = read_comment(lines)
        problems += block.problems(self.file, lines, range(line - len(lines), line))
        return block

    def _read_aot_id(self, problems: list[Problem]) -> str | None:
        aot_id, line, block = _aot_id(self.text)
        if line:
            problems += block.problems(self.file, [self.text.split("\n")[line - 1]], [line])
        return aot_id

    def _without_kernels(self, definitions: list[Definition], end: int) -> str:
        """The text up to `end` without the kernels' sources, lines kept; a definition cut short goes as a whole."""
        parts, position = [], 0
        for definition in definitions:
            cut = definition.body_start if definition.closed else definition.start
            parts += [self.text[position:cut], "\n" * self.text.count("\n", cut, definition.body_end)]
            position = definition.body_end
        return "".join([*parts, self.text[position:end]])

    def _python_problems(self, source: PythonSource) -> list[Problem]:
        lines = self.text.split("\n")
        return [
            Problem(Location(self.file, line, column), reason, excerpt_of(lines[line - 1]), count)
            for line, column, reason, count in source.bad
        ]

    def _strays(self, source: PythonSource, end: int) -> list[Problem]:
        """Module-level statements that no version writes, and code behind the benchmark functions."""
        message = "expected a module-level statement that the wrapper code generator writes"
        found = [
            Problem(
                Location(self.file, s.lineno, s.col_offset + 1),
                message,
                excerpt_of(source.lines[s.lineno - 1]),
                _height(s),
            )
            for s in source.body
            if not _is_boilerplate(s)
        ]
        stray = _AFTER_BENCHMARK.search(self.text, end)
        if stray:
            first, last = self._line(stray.start()), self._line(len(self.text.rstrip()))
            message = "expected nothing behind the benchmark code"
            found.append(Problem(Location(self.file, first), message, excerpt_of(stray[0]), last - first + 1))
        return found

    def _cut_off(self, functions: dict[str, ast.FunctionDef], source: PythonSource) -> list[Problem]:
        """A file without `call`, or whose `call` never returns, was cut off."""
        call = functions.get("call")
        if call is not None and any(isinstance(node, ast.Return) for node in call.body):
            return []
        last = max((number for number, line in enumerate(source.lines, 1) if line.strip()), default=1)
        what = "a `call` function" if call is None else "`call` to return"
        line = source.lines[last - 1]
        return [
            Problem(
                Location(self.file, last, len(line) + 1),
                f"expected {what} before the end of the file",
                excerpt_of(line),
            )
        ]


def _parsed(code: str) -> PythonSource:
    """The wrapper as Python. Size checks say nothing here and are a fourth of what there is to parse."""
    source = parse_python(_CHECK.sub(lambda match: match[0] if match["comment"] else "", code))
    return parse_python(code) if source.bad else source


def _height(statement: ast.stmt) -> int:
    return (statement.end_lineno or statement.lineno) - statement.lineno + 1


def _is_boilerplate(statement: ast.stmt) -> bool:
    """Imports, aliases, definitions: what surrounds the functions at module level."""
    if isinstance(statement, ast.FunctionDef):
        return _takes_args(statement)
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Call | ast.Constant)
    plain = ast.Import | ast.ImportFrom | ast.Assign | ast.ClassDef | ast.Delete | ast.If | ast.Pass
    return isinstance(statement, plain)


def _takes_args(function: ast.FunctionDef) -> bool:
    """`call(args)`, `call(self, args)`, `partition_0(args)`, `true_graph_0(args)`."""
    return bool(function.args.args) and function.args.args[-1].arg == "args"


def _functions(body: list[ast.stmt]) -> dict[str, ast.FunctionDef]:
    """The wrapper's functions: those at module level, and `call` of the runner class (torch 2.9 and later)."""
    found = {s.name: s for s in body if isinstance(s, ast.FunctionDef) and _takes_args(s)}
    for runner in (s for s in body if isinstance(s, ast.ClassDef)):
        found.update({s.name: s for s in runner.body if isinstance(s, ast.FunctionDef) and s.name == "call"})
    return found
