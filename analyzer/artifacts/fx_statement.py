"""One line of an FX graph's `forward`: `x: "f32[8]" = torch.ops.aten.add.Tensor(a, 1);  a = None`.

torch/fx/graph.py (`CodeGen._gen_python_code.emit_node`) writes each node as one such line. The line is split with a
pattern, the expression is read by the standard parser; nothing is evaluated.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import lru_cache

from analyzer.artifacts.shapes import HOLES, Filler, Memory, filler, has_holes, shape_of, split_numbers

_HEAD = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)\s*(?P<colon>:\s*\"(?P<quoted>[^\"]*)\"\s*|:)?")
_ASSIGN = re.compile(r"(?<![<>=!])=(?!=)")
_CLEANUP = re.compile(r";\s*(?:[A-Za-z_]\w*\s*=\s*)+None\s*$")
_IN_PLACE = re.compile(
    r"(?P<expression>.*\S);  (?P<name>[A-Za-z_]\w*)(?:\s*:\s*\"(?P<quoted>[^\"]*)\")? = (?P<alias>\w+)$"
)
_MENTION = re.compile(
    r"""'[^'\\]*(?:\\.[^'\\]*)*'?|"[^"\\]*(?:\\.[^"\\]*)*"?|\.\s*[A-Za-z_]\w*|\d[\w.]*"""
    r"""|(?P<name>[A-Za-z_]\w*)(?P<other>\s*=(?!=)|\()?"""
)

_BINARY = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.FloorDiv: "floordiv",
    ast.Div: "truediv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
    ast.BitAnd: "and_",
    ast.BitOr: "or_",
    ast.BitXor: "xor",
    ast.MatMult: "matmul",
}
_COMPARE = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.Gt: "gt", ast.LtE: "le", ast.GtE: "ge"}
_UNARY = {ast.UAdd: "pos", ast.USub: "neg", ast.Invert: "invert"}


_shapes: Memory[str, Filler | None] = Memory()
"""How to read an expression of a shape seen before; None for shapes that have to be read one by one."""


class StatementError(ValueError):
    """A line that is no FX node; `offset` counts characters from the start of the text that was given."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Line:
    """A statement split into its parts; `offset` is where `expression` begins in the line, `column` where the name."""

    name: str
    annotation: str | None
    expression: str | None
    column: int
    offset: int


@dataclass(frozen=True, slots=True)
class Operation:
    """What a node computes: its FX op and target, and the source texts of its arguments."""

    op: str
    target: str
    args: tuple[str, ...] = ()
    kwargs: tuple[tuple[str, str], ...] = ()


@lru_cache(maxsize=8192)
def split_line(line: str) -> Line | None:
    """Split `name: "annotation" = expression;  a = None`; None where the line has another form.

    In-place operators (`a += b;  iadd = a`) give the name on their right. Without `=` it is a declaration.
    """
    body = _CLEANUP.sub("", line.rstrip())
    if not body.endswith(")") and (in_place := _IN_PLACE.fullmatch(body)):
        return Line(in_place["name"], in_place["quoted"], in_place["expression"].lstrip(), *_starts(in_place))
    head = _HEAD.match(body)
    assign = _ASSIGN.search(body, head.end()) if head else None
    between = body[head.end() : assign.start() if assign else None] if head else ""
    annotation = between.strip() if head and head["colon"] == ":" else head["quoted"] if head else None
    if head is None or (head["colon"] != ":" and between.strip()):
        return None
    if assign is None:
        return Line(head["name"], annotation, None, head.start("name"), len(body))
    start = assign.end() + len(body[assign.end() :]) - len(body[assign.end() :].lstrip())
    return Line(head["name"], annotation, body[start:] or None, head.start("name"), start)


def _starts(match: re.Match[str]) -> tuple[int, int]:
    return match.start("name"), len(match[0]) - len(match[0].lstrip())


def operation(expression: str, known: Container[str]) -> Operation:
    """Read the right-hand side of a node. Names in `known` are earlier nodes.

    Raises:
        StatementError: where the text is no expression, or none that FX prints.
    """
    if expression.startswith("torch.") and "torch" not in known and (found := _by_shape(expression)):
        return found
    return _read(expression, known)


def _read(expression: str, known: Container[str]) -> Operation:
    tree = parse_expression(expression)
    if (read := _Reader(expression, known).read(tree)) is None:
        raise StatementError("expected a call, an attribute of self, or an operator", 0)
    return read


@lru_cache(maxsize=8192)
def _by_shape(expression: str) -> Operation | None:
    """The same for a call of an operator, from the shape of its text; None where the shape does not tell."""
    key, numbers = split_numbers(expression)
    if len(numbers) >= HOLES or has_holes(expression) or any(n[0] == "0" and len(n) > 1 for n in numbers):
        return None
    if key not in _shapes:
        _shapes[key] = _filler(key, expression)
    fill = _shapes[key]
    read: Operation | None = fill(numbers, "", 0) if fill else None
    return read


def _filler(key: str, expression: str) -> Filler | None:
    """A shape says nothing of numbers, so it holds only where the text is right with a 0 for each of them too."""
    try:
        _read(key, ())
        return filler(_read(shape_of(expression), ()))
    except StatementError:
        return None


def parse_expression(text: str) -> ast.expr:
    """`ast.parse` of one expression (or one in-place assignment) with every failure as a `StatementError`."""
    try:
        statement = ast.parse(text, mode="exec").body
    except SyntaxError as error:
        raise StatementError(f"not valid Python: {error.msg}", max(0, (error.offset or 1) - 1)) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise StatementError(f"not readable as Python: {type(error).__name__}", 0) from None
    if len(statement) == 1 and isinstance(statement[0], ast.Expr):
        return statement[0].value
    if len(statement) == 1 and (operator_call := _in_place_call(statement[0])):
        return operator_call
    raise StatementError("expected one expression", 0)


def _in_place_call(statement: ast.stmt) -> ast.expr | None:
    """`a += b` and `a[i] = b` as the calls `operator.iadd(a, b)` and `operator.setitem(a, i, b)` they stand for."""
    if isinstance(statement, ast.AugAssign):
        name = "i" + _BINARY[type(statement.op)].rstrip("_")
        return _operator_call(name, statement.target, statement.value)
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        target = statement.targets[0]
        return _operator_call("setitem", target.value, target.slice, statement.value)
    return None


def _operator_call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name("operator"), name), list(args), [])


def mentions(text: str, known: Container[str]) -> Iterator[str]:
    """The nodes that a source text mentions, in order, repeats kept; strings, attributes and keywords are none."""
    if text in known:
        yield text
        return
    for match in _MENTION.finditer(text):
        name = match["name"]
        if name is not None and match["other"] is None and name in known:
            yield name


class _Reader:
    """Reads one expression; holds its text, from which arguments are cut."""

    def __init__(self, text: str, known: Container[str]) -> None:
        self._bytes = None if text.isascii() else text.encode()
        self._text = text
        self._known = known

    def read(self, tree: ast.expr) -> Operation | None:
        path = _attribute_path(tree)
        if path is not None and (name := path.removeprefix("self.")) != path:
            return Operation("get_attr", name)
        if isinstance(tree, ast.Call):
            return self._call(tree)
        if isinstance(tree, ast.Attribute) and isinstance(tree.value, ast.Name) and tree.value.id in self._known:
            return Operation("call_function", "getattr", (tree.value.id, repr(tree.attr)))
        return self._operator(tree)

    def _call(self, tree: ast.Call) -> Operation | None:
        args = tuple(self._source(arg) for arg in tree.args)
        kwargs = tuple((word.arg or "**", self._source(word.value)) for word in tree.keywords)
        path = _attribute_path(tree.func)
        if path is None:
            return self._method(tree.func, args, kwargs)
        root, _, rest = path.partition(".")
        if root == "self":
            return Operation("call_module", rest, args, kwargs)
        if rest and root in self._known:
            return self._method(tree.func, args, kwargs)
        return Operation("call_function", path.removeprefix("torch.ops."), args, kwargs)

    def _method(self, func: ast.expr, args: tuple[str, ...], kwargs: tuple[tuple[str, str], ...]) -> Operation | None:
        if not isinstance(func, ast.Attribute):
            return None
        return Operation("call_method", func.attr, (self._source(func.value), *args), kwargs)

    def _operator(self, tree: ast.expr) -> Operation | None:
        match tree:
            case ast.Subscript():
                name, operands = "getitem", [tree.value, tree.slice]
            case ast.BinOp():
                name, operands = _BINARY[type(tree.op)], [tree.left, tree.right]
            case ast.Compare(ops=[op], comparators=[right]) if type(op) in _COMPARE:
                name, operands = _COMPARE[type(op)], [tree.left, right]
            case ast.UnaryOp() if type(tree.op) in _UNARY:
                name, operands = _UNARY[type(tree.op)], [tree.operand]
            case _:
                return None
        return Operation("call_function", f"operator.{name}", tuple(self._source(operand) for operand in operands))

    def _source(self, tree: ast.expr) -> str:
        if self._bytes is None:
            return self._text[tree.col_offset : tree.end_col_offset]
        return self._bytes[tree.col_offset : tree.end_col_offset].decode()


def _attribute_path(tree: ast.expr) -> str | None:
    """`torch.ops.aten.cos.default`, or None; `getattr(self.layers, "0").weight` is how FX prints other names."""
    parts: list[str] = []
    while not isinstance(tree, ast.Name):
        match tree:
            case ast.Attribute():
                parts.append(tree.attr)
                tree = tree.value
            case ast.Call(func=ast.Name(id="getattr"), args=[inner, ast.Constant(value=str(name))], keywords=[]):
                if not _starts_at_self(inner):
                    return None
                parts.append(name)
                tree = inner
            case _:
                return None
    return ".".join([tree.id, *reversed(parts)])


def _starts_at_self(tree: ast.expr) -> bool:
    while isinstance(tree, (ast.Attribute, ast.Call)):
        tree = tree.value if isinstance(tree, ast.Attribute) else next(iter(tree.args), ast.Constant(None))
    return isinstance(tree, ast.Name) and tree.id == "self"
