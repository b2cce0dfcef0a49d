"""FX graphs as `print_readable` writes them: `fx_graph_readable.py`, `fx_graph_transformed.py`, trace logs, TORCH_LOGS.

torch/fx/graph_module.py (`_print_readable`) and torch/fx/graph.py (`CodeGen`) write one node per line, subgraphs as
nested classes. Lines are read one by one, so `class <lambda>(..)`, which is no Python, costs nothing and a damaged line
costs one node. Only `def forward(` and `return` may run over several lines.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from analyzer.artifacts.annotations import Annotation, parse_annotation, source_site, split_top_level
from analyzer.artifacts.fx_liveness import live_names, users_of
from analyzer.artifacts.fx_statement import Operation, StatementError, mentions, operation, parse_expression, split_line
from analyzer.model import Artifact, FxGraph, FxNode, Location, Problem, SourceSite, artifact_of

_CLASS = re.compile(r"(?P<indent>\s*)(?:\S+\s+)?class\s+(?P<name>[^\s(]+)\(.*\):\s*")
_DEF = re.compile(r"\s*def\s+\w+\(")
_FILLER = re.compile(r"TRACED GRAPH|=====.*=====|import\s.*|from\s.*|@.*|pass|\"\"\"|'''|\)")
_ARGUMENT = re.compile(r"(?P<name>\**[A-Za-z_]\w*)\s*(?::\s*(?:\"(?P<quoted>[^\"]*)\"|(?P<bare>[^=\"]+)))?\s*(?:=.*)?")
_DECLARATION = re.compile(r"\s*(?P<name>[A-Za-z_]\w*):\s*\"(?P<annotation>[^\"]*)\"\s*;?")
_UNFLATTEN = re.compile(r"\s*(?P<names>[A-Za-z_][\w, ]*), = (?:fx_pytree\.tree_flatten_spec|pytree\.tree_leaves)\(.*")
_DEEPEST = 50
_EXCERPT = 160


def parse(text: str, source: str) -> FxGraph:
    """Read a printed FX graph; `source` names it in locations. Never raises: what it cannot read becomes Problems."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        return _Parser(text, source).graph()


@dataclass
class _Scope:
    """One class under construction; `lost` are names that unreadable lines mention."""

    indent: int
    nodes: dict[str, FxNode] = field(default_factory=dict)
    declared: dict[str, str] = field(default_factory=dict)
    outputs: tuple[str | None, ...] = ()
    children: dict[str, _Scope] = field(default_factory=dict)
    site: SourceSite | None = None
    lost: set[str] = field(default_factory=set)
    open: bool = False
    renamed: bool = False
    computes: bool = False


class _Parser:
    def __init__(self, text: str, source: str) -> None:
        self._text, self._source = text, source
        self._lines = text.split("\n")
        self._at = 0
        self._root: _Scope | None = None
        self._stack: list[_Scope] = []
        self._problems: list[Problem] = []

    def graph(self) -> FxGraph:
        while self._at < len(self._lines):
            line = self._lines[self._at]
            self._at += 1
            self._line(line)
        if self._text.strip() and self._root is None and not self._problems:
            self._problem(1, 1, "expected `class <name>(torch.nn.Module):` or `def forward(`")
        if not self._problems and any(scope.open for scope in self._stack):
            last = len(self._text.rstrip().split("\n"))
            self._problem(last, len(self._lines[last - 1]) + 1, "expected `return` before the end")
        artifact = artifact_of(self._source, self._text, tuple(self._problems))
        return _finish(self._root or _Scope(0), artifact)

    def _line(self, line: str) -> None:
        stripped = line.strip()
        if not stripped:
            return
        if stripped[0] == "#":
            if self._stack:
                self._stack[-1].site = source_site(stripped)
        elif stripped[-1] == ":" and (match := _CLASS.fullmatch(line)):
            self._enter(match["name"], len(match["indent"]))
        elif stripped[-1] in ":(" and _DEF.match(line):
            self._forward(line)
        elif self._stack and self._stack[-1].open and _indent(line) > self._stack[-1].indent:
            self._statement(self._stack[-1], line, stripped)
        elif not _FILLER.fullmatch(stripped):
            self._problem(self._at, _indent(line) + 1, "expected a statement of `forward`")

    def _enter(self, name: str, indent: int) -> None:
        while self._stack and self._stack[-1].indent >= indent:
            self._stack.pop()
        scope = _Scope(indent)
        if self._stack and len(self._stack) < _DEEPEST:
            self._stack[-1].children[name] = scope
        elif self._root is None:
            self._root = scope
        else:
            self._problem(self._at, indent + 1, "expected one graph with subgraphs inside it, found another class")
        self._stack.append(scope)

    def _forward(self, line: str) -> None:
        if not self._stack:
            self._enter("", _indent(line) - 1)
        scope, first = self._stack[-1], self._at
        scope.open = True
        if _ends_def(line):
            body = line[line.index("(") + 1 : line.rindex(")")]
            self._inputs(scope, body, first, line.index("(") + 1)
            return
        for number in self._rest(line):
            body = re.sub(r"\s#\s.*", "", self._lines[number - 1])
            if not _ends_def(body):
                self._inputs(scope, body, number, 0)

    def _rest(self, line: str) -> Iterator[int]:
        """Numbers of the lines up to the one that closes a bracket at the indentation of `line`, that one included."""
        indent, first = _indent(line), self._at
        while self._at < len(self._lines):
            following = self._lines[self._at]
            if following.strip() and _indent(following) <= indent and following.strip()[0] not in ")]":
                break
            self._at += 1
            yield self._at
            if following.strip()[:1] in (")", "]") and _indent(following) <= indent:
                return
        self._problem(first, indent + 1, "expected the closing bracket of this statement")

    def _inputs(self, scope: _Scope, body: str, line: int, column: int) -> None:
        for start, piece in split_top_level(body):
            text, offset = piece.strip(), start + _indent(piece)
            match = _ARGUMENT.fullmatch(text)
            if match is None:
                if text not in ("", "/", "*"):
                    self._problem(line, column + offset + 1, 'expected `name: "annotation"`')
            elif match["name"] != "self":
                annotation = match["quoted"] if match["quoted"] is not None else match["bare"] and match["bare"].strip()
                self._placeholder(scope, match["name"], annotation, line, column + offset + 1)

    def _placeholder(self, scope: _Scope, name: str, annotation: str | None, line: int, column: int) -> None:
        plain = name.lstrip("*")
        place, read = Location(self._source, line, column), Operation("placeholder", name)
        scope.nodes[plain] = _node_of(plain, read, annotation, scope, place)

    def _statement(self, scope: _Scope, line: str, stripped: str) -> None:
        if stripped.startswith("return") and not stripped[6:7].isidentifier():
            self._return(scope, line)
        elif _DECLARATION.match(line) and (declared := _declarations(line)):
            scope.declared.update(declared)
        elif match := _UNFLATTEN.fullmatch(line):
            self._unflatten(scope, match["names"])
        else:
            self._node(scope, line)

    def _unflatten(self, scope: _Scope, names: str) -> None:
        """`a, b, = fx_pytree.tree_flatten_spec(..)`: the graph's inputs are these, not the function's parameters."""
        scope.nodes.clear()
        start = self._lines[self._at - 1].index(names) + 1
        for offset, piece in split_top_level(names):
            name, column = piece.strip(), start + offset + _indent(piece)
            self._placeholder(scope, name, scope.declared.get(name), self._at, column)

    def _node(self, scope: _Scope, line: str) -> None:
        parts = split_line(line)
        if parts is None or parts.expression is None:
            self._lose(scope, line, _indent(line), 'expected `name: "annotation" = expression`')
        elif parts.expression in scope.nodes and not scope.computes:
            _rename(scope, parts.expression, parts.name)
        else:
            try:
                read = operation(parts.expression, scope.nodes)
            except StatementError as error:
                self._lose(scope, line, parts.offset + error.offset, str(error))
                return
            place = Location(self._source, self._at, parts.column + 1)
            scope.nodes[parts.name] = _node_of(parts.name, read, parts.annotation, scope, place)
            scope.computes = True

    def _lose(self, scope: _Scope, line: str, offset: int, message: str) -> None:
        scope.lost.update(mentions(line.partition(";  ")[0], scope.nodes))
        self._problem(self._at, offset + 1, message)

    def _return(self, scope: _Scope, line: str) -> None:
        start, first = line.index("return") + 6, self._at
        text = line[start:].strip()
        if text.endswith(("(", "[")):
            text = "\n".join([text, *(self._lines[number - 1].strip() for number in self._rest(line))])
        try:
            tree = parse_expression(text or "None")
        except StatementError as error:
            self._problem(first, start + 2 + error.offset, str(error))
            return
        scope.outputs = tuple(_returned(tree))
        name = next(name for name in _output_names() if name not in scope.nodes)
        inputs = tuple(output for output in scope.outputs if output is not None)
        place = Location(self._source, first, line.index("return") + 1)
        scope.nodes[name] = FxNode(name, "output", "output", (ast.unparse(tree),), inputs=inputs, location=place)
        scope.open = False

    def _problem(self, line: int, column: int, message: str) -> None:
        """Note one bad line; a stretch of lines that are bad for the same reason is one Problem."""
        last = self._problems[-1] if self._problems else None
        if last and last.message == message and last.location.line + last.lines == line:
            self._problems[-1] = replace(last, lines=last.lines + 1)
            return
        excerpt = self._lines[line - 1].strip()[:_EXCERPT]
        self._problems.append(Problem(Location(self._source, line, column), message, excerpt))


def _ends_def(line: str) -> bool:
    """Whether a line ends with `):` or `) -> type:`."""
    head = line.rstrip()
    if not head.endswith(":"):
        return False
    signature, arrow, _ = head.rpartition("->")
    return (signature if arrow else head[:-1]).rstrip().endswith(")")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _output_names() -> Iterator[str]:
    yield "output"
    number = 1
    while True:
        yield f"output_{number}"
        number += 1


def _declarations(line: str) -> dict[str, str] | None:
    """`a: "f32[8]"; b: "Sym(s0)"; ` or the same with one comment; None where anything else follows."""
    found, at = {}, 0
    while match := _DECLARATION.match(line, at):
        found[match["name"]] = match["annotation"]
        at = match.end()
    rest = line[at:].strip()
    return found if not rest or rest.startswith("#") else None


def _rename(scope: _Scope, old: str, new: str) -> None:
    """`l_x_ = L_x_`: a placeholder whose parameter has another name than its node."""
    scope.nodes[new] = replace(scope.nodes.pop(old), name=new)
    scope.renamed = True


def _node_of(name: str, read: Operation, annotation: str | None, scope: _Scope, place: Location) -> FxNode:
    texts = (*read.args, *(text for _, text in read.kwargs))
    typed = Annotation() if annotation is None else parse_annotation(annotation)
    return FxNode(
        name,
        read.op,
        read.target,
        read.args,
        read.kwargs,
        tuple(mention for text in texts for mention in mentions(text, scope.nodes)),
        annotation=annotation,
        dtype=typed.dtype,
        shape=typed.shape,
        stride=typed.stride,
        device=typed.device,
        source=None if read.op == "placeholder" else scope.site,
        location=place,
    )


def _returned(tree: ast.expr) -> Iterator[str | None]:
    """Names in a returned expression in order: nested tuples, lists and dicts flattened, None for what is no node."""
    match tree:
        case ast.Name(id=name):
            yield name
        case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Dict(values=items):
            for item in items:
                yield from _returned(item)
        case ast.Call(func=ast.Attribute(attr="tree_unflatten"), args=[leaves, *_]):
            yield from _returned(leaves)
        case _:
            yield None


def _place(node: FxNode) -> tuple[int, int]:
    return (node.location.line, node.location.column) if node.location else (0, 0)


def _connect(node: FxNode, users: tuple[str, ...], live: bool) -> FxNode:
    """Fills in what only the whole graph tells. Nobody has seen the record yet; a copy would double its cost."""
    if users:
        object.__setattr__(node, "users", users)
    if not live:
        object.__setattr__(node, "live", False)
    return node


def _finish(scope: _Scope, artifact: Artifact) -> FxGraph:
    nodes = tuple(sorted(scope.nodes.values(), key=_place) if scope.renamed else scope.nodes.values())
    users, live = users_of(nodes), live_names(nodes, scope.lost)
    return FxGraph(
        artifact,
        tuple(_connect(node, users.get(node.name, ()), node.name in live) for node in nodes),
        scope.outputs,
        {name: _finish(child, artifact) for name, child in scope.children.items()},
    )
