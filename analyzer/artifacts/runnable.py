"""`fx_graph_runnable.py`: the torch version, the settings and the inputs of one compile.

torch/_dynamo/repro/after_aot.py (`generate_compiler_repro_string`) writes it, torch/utils/_config_module.py the config
lines, torch/_dynamo/debug_utils.py (`InputWriter`) the inputs. Values are kept as source text: nothing is evaluated.
The script need not be valid Python (symbolic sizes, environment values with quotes), so it is read line by line.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from analyzer.artifacts.annotations import dimensions
from analyzer.artifacts.config_noise import reason_for_noise
from analyzer.artifacts.fx_statement import StatementError, parse_expression
from analyzer.model import Layout, Location, Problem, RunnableScript, Size, artifact_of

_VERSION = re.compile(r"# torch version: (\S+)")
_KEY = re.compile(r"torch\.(?:[A-Za-z_]\w*\.)*_?config\.[\w.]+")
_ENV_SET = re.compile(r"os\.environ\['(?P<key>[^'\n]*)'\] = '(?P<value>.*)", re.DOTALL)
_ENV_POP = re.compile(r"os\.environ\.pop\('(?P<key>[^']*)'")
_LONGEST_VALUE, _LONGEST_TEXT, _LONGEST_KEY = 50, 100_000, 300
_STORAGE = re.compile(r"reader\.tensor\(([A-Za-z_]\w*)(?=[,)])")
_READER = re.compile(r"    (?:(?P<storage>\w+) = )?(?P<call>reader\.(?P<kind>\w+)\(.*\))(?:\s+# (?P<name>.*))?")


def parse(text: str, source: str) -> RunnableScript:
    """Read the script. What is expected and missing (`class Repro`, a readable `load_args`) becomes a Problem."""
    return _Reader(text, source).script()


def meaningful_config(script: RunnableScript) -> Mapping[str, str]:
    """The settings that someone chose: without what torch prints always, and without known default values.

    A value equal to the default is never printed on the first compile of a process, so a default that someone set
    explicitly cannot be told apart (torch/utils/_config_module.py).
    """
    version = script.torch_version
    return {key: value for key, value in script.config.items() if not reason_for_noise(key, value, version)}


class _Reader:
    def __init__(self, text: str, source: str) -> None:
        self._text, self._source = text, source
        self._lines = [line.rstrip("\r") for line in text.split("\n")]
        self._problems: list[Problem] = []
        self._config: dict[str, str] = {}
        self._config_lines: dict[str, int] = {}
        self._environment: dict[str, str] = {}
        self._version: str | None = None

    def script(self) -> RunnableScript:
        model = next((at for at, line in enumerate(self._lines) if line.startswith("class Repro(")), None)
        if model is None and self._text.strip():
            self._problem(len(self._lines), "expected `class Repro(torch.nn.Module):` before the end of the script")
        self._head(len(self._lines) if model is None else model)
        inputs = self._inputs(len(self._lines) if model is None else model)
        artifact = artifact_of(self._source, self._text, tuple(self._problems))
        return RunnableScript(artifact, self._version, self._config, self._environment, inputs, self._config_lines)

    def _head(self, end: int) -> None:
        at = 0
        while at < end:
            line = self._lines[at]
            at += 1
            if setting := _setting(line):
                key, value = setting
                taken = self._value_lines(value, at, end)
                self._config_lines[key] = at
                self._config[key] = "\n".join([value, *self._lines[at : at + taken]])
                at += taken
            elif line.startswith("os.environ["):
                at += self._environment_line(line, at, end)
            elif match := _ENV_POP.match(line):
                self._environment.pop(match["key"], None)
            elif match := _VERSION.match(line):
                self._version = match[1]

    def _value_lines(self, value: str, at: int, end: int) -> int:
        """How many further lines belong to a value: as many as make it an expression, else none (reprs of objects)."""
        for taken in range(min(_LONGEST_VALUE, end - at) + 1):
            following = self._lines[at : at + taken]
            text = "\n".join([value, *following])
            if len(text) > _LONGEST_TEXT or any(
                _setting(line) or line.startswith("import ") for line in following[-1:]
            ):
                return 0
            if _is_expression(text):
                return taken
        return 0

    def _environment_line(self, line: str, at: int, end: int) -> int:
        """`os.environ['KEY'] = 'VALUE'`; torch does not escape the value, which may hold line breaks."""
        taken = 0
        while not line.endswith("'") or line.endswith("] = '"):
            following = self._lines[at + taken] if at + taken < end else "import "
            if taken >= _LONGEST_VALUE or following.startswith(("os.environ", "import ")):
                break
            line += "\n" + following
            taken += 1
        match = _ENV_SET.fullmatch(line)
        if match is None or not match["value"].endswith("'"):
            self._problem(at, "expected `os.environ['NAME'] = 'VALUE'`")
            return 0
        self._environment[match["key"]] = match["value"][:-1]
        return taken

    def _inputs(self, start: int) -> tuple[tuple[str, Layout], ...]:
        storages: dict[str, str] = {}
        found: list[tuple[str, Layout]] = []
        for at in self._load_args(start):
            match = _READER.fullmatch(self._lines[at])
            if match is None:
                self._problem(at + 1, "expected a call of `reader`")
                continue
            try:
                if match["kind"] == "storage":
                    storages[match["storage"] or ""] = _storage_device(match["call"])
                else:
                    found.append(_input(match, storages))
            except StatementError as error:
                self._problem(at + 1, str(error), match.start("call") + error.offset + 1)
        return tuple(found)

    def _load_args(self, start: int) -> Iterable[int]:
        """Indices of the lines of `load_args`, without comments, code and the quoted parts of unsupported inputs."""
        starts = (at for at in range(start, len(self._lines)) if self._lines[at].startswith("def load_args("))
        quoted = False
        for at in range(next(starts, len(self._lines)) + 1, len(self._lines)):
            line = self._lines[at]
            if line.strip() and not line.startswith(" "):
                return
            if line.strip() == '"""':
                quoted = not quoted
            elif line.strip() and not quoted and not line.startswith(_FIXUP):
                yield at

    def _problem(self, line: int, message: str, column: int = 1) -> None:
        excerpt = self._lines[line - 1].strip()[:160]
        self._problems.append(Problem(Location(self._source, line, column), message, excerpt))


_FIXUP = ("    #", "    if hasattr(reader", "     ", "    pass")
"""`load_args` may end with code that repairs random inputs (`repeat_interleave`), and is `pass` without inputs."""


def _setting(line: str) -> tuple[str, str] | None:
    """`torch._inductor.config.x = value` as key and value. The key is cut off first: the pattern must not run on."""
    key, assigned, value = line.partition(" =")
    if not assigned or not line.startswith("torch.") or len(key) > _LONGEST_KEY or _KEY.fullmatch(key) is None:
        return None
    return key, value.removeprefix(" ")


def _is_expression(text: str) -> bool:
    try:
        parse_expression(text.strip())
    except StatementError:
        return False
    return True


@lru_cache(maxsize=1024)
def _storage_device(text: str) -> str:
    return _device(_keyword(parse_expression(text), "device"))


def _input(match: re.Match[str], storages: Mapping[str, str]) -> tuple[str, Layout]:
    name, text = (match["name"] or "").partition(",")[0].strip(), match["call"]
    storage = _STORAGE.match(text)
    try:
        layout = _tensor(_STORAGE.sub("reader.tensor(_", text)) if match["kind"] == "tensor" else None
    except StatementError:
        layout = None
    if layout is None:
        parse_expression(text)  # what cannot be read says where in its own line
        return name, Layout(match["kind"], text)
    return name, replace(layout, text=text, device=storages.get(storage[1] if storage else ""))


@lru_cache(maxsize=1024)
def _tensor(text: str) -> Layout | None:
    """What a call says but for its storage, as many inputs do; None for another expression."""
    call = parse_expression(text)
    if not isinstance(call, ast.Call):
        return None
    positional = [_sizes(ast.unparse(arg)) for arg in call.args[1:3]]
    size = positional[0] if positional else None
    return Layout(
        "tensor",
        "",
        None,
        _keyword(call, "dtype") or "torch.float32",
        size,
        positional[1] if len(positional) > 1 else _contiguous(size),
        dimensions(_keyword(call, "storage_offset") or "0")[0],
    )


def _keyword(call: ast.expr, name: str) -> str | None:
    keywords = call.keywords if isinstance(call, ast.Call) else []
    return next((ast.unparse(word.value) for word in keywords if word.arg == name), None)


def _device(text: str | None) -> str:
    """`device(type='cuda', index=0)` → `cuda:0`; no device is the CPU (`_device_or_default`)."""
    if text is None:
        return "cpu"
    match = re.fullmatch(r"(?:torch\.)?device\((?:type=)?'([^']*)'(?:, (?:index=)?(\d+))?\)", text)
    if match is None:
        return text
    return match[1] if match[2] is None else f"{match[1]}:{match[2]}"


def _sizes(text: str) -> tuple[Size, ...]:
    return dimensions(text.removeprefix("(").removesuffix(")"))


def _contiguous(size: tuple[Size, ...] | None) -> tuple[Size, ...] | None:
    """The strides that `InputWriter.tensor` leaves out; None with symbolic sizes."""
    if size is None or not all(isinstance(dim, int) for dim in size):
        return None
    strides, step = [], 1
    for dim in reversed(size):
        strides.append(step)
        step *= max(int(dim), 1)
    return tuple(reversed(strides))
