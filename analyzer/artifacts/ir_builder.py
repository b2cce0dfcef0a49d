"""From the parse tree of one scheduler node (grammars/ir_dump.lark) to its record."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from lark import Token

from analyzer.artifacts import ir_values as values
from analyzer.artifacts.ir_terms import Bracket, NodeError, Term, TermBuilder, start_of
from analyzer.artifacts.shapes import Number, number
from analyzer.model import Block, DumpBuffer, DumpNode, Layout, Location, LoopBody, Statement

_MODULE_FAMILY = re.compile(r"[A-Za-z_]*[A-Za-z]")
_GETITEM = re.compile(r"(\w+)\[(-?\w+)\]")


class _Field(NamedTuple):
    """One entry of a node or of a buffer: the record's field that it fills, and the name that it carries."""

    name: str
    value: Any
    owner: str | None


class _Header(NamedTuple):
    name: str
    node_class: str
    inner: tuple[str, ...]
    place: Location


def attribute(name: str, value: Any, owner: str | None) -> Any:
    """An entry as the builder takes it."""
    return _Field(name, value, owner)


class _BodyBuilder(TermBuilder[DumpNode]):
    """Loop bodies (torch/_inductor/loop_body.py)."""

    def ops_call(self, children: list[Any]) -> Statement:
        """`load = ops.load('buf0', get_index)`."""
        *result, callee, bracket = children
        args, kwargs = _arguments(bracket)
        return Statement(_result(result), callee.partition(".")[2], args, kwargs)

    def module_call(self, children: list[Any]) -> Statement:
        """`get_index = self.get_index('index0')`; the args of other modules begin with the module's full name."""
        *result, callee, bracket = children
        args, kwargs = _arguments(bracket)
        module = callee.partition(".")[2]
        if module == "get_index":
            return Statement(_result(result), module, args, kwargs)
        family = _MODULE_FAMILY.match(module)
        return Statement(_result(result), family[0] if family else module, (module, *args), kwargs)

    def getitem(self, children: list[Token]) -> Statement:
        """`getitem = reduction[0]`."""
        parts = _GETITEM.match(children[1])
        assert parts is not None
        return Statement(str(children[0]), "getitem", parts.groups())

    def ending(self, children: list[Token]) -> Statement:
        """`return store`."""
        return Statement(None, "return", tuple(str(child) for child in children))

    def block(self, children: list[Any]) -> Block:
        """`def body(self, ops):` and its statements, the return last."""
        return Block(children[0], tuple(children[1:]))

    def index(self, children: list[Token]) -> tuple[str, str]:
        """`index0 = 64*p0 + p1`."""
        return str(children[0]), _balanced(children[1])

    def block_head(self, children: list[Token]) -> str:
        """`def body(self, ops):`."""
        return str(children[0])

    def body_head(self, children: list[Any]) -> _Field:
        """`class op0_loop_body:` and `var_ranges = {p0: 64}`."""
        name, bracket = children
        return _Field("ranges", values.ranges(self.term([bracket])), name.update(value=name.removesuffix("_loop_body")))

    def loop_body(self, children: list[Any]) -> _Field:
        """The whole class."""
        head, *rest = children
        indices = tuple(part for part in rest if isinstance(part, tuple))
        blocks = tuple(part for part in rest if isinstance(part, Block))
        return _Field("body", LoopBody(head.value, indices, blocks), head.owner)


class _BufferBuilder(_BodyBuilder):
    """Buffers and layouts (torch/_inductor/scheduler.py, `SchedulerBuffer.debug_str`)."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.same: list[tuple[str, str]] = []

    def buffer(self, children: list[Any]) -> DumpBuffer:
        """One buffer of `outputs`."""
        name, ir_class, *entries = children
        fields = self._fields(name, entries)
        return DumpBuffer(str(name), str(ir_class), fields.pop("layout", None), location=_place(name), **fields)

    def layout(self, children: list[Any]) -> Layout:
        """A layout with arguments, or any other text."""
        if len(children) == 1:
            return values.layout(Term(str(children[0]), start_of(children[0])))
        return values.layout(self.term(children))

    def buffer_layout(self, children: list[Any]) -> _Field:
        """`buf0.layout = FixedLayout(...)`."""
        return _Field("layout", children[1], children[0])

    def aliases(self, children: list[Any]) -> _Field:
        """`buf0.aliases = ['buf1']`."""
        return _Field("aliases", values.names(children[1]), children[0])

    def mutations(self, children: list[Any]) -> _Field:
        """`buf0.mutations = ['arg0_1']`."""
        return _Field("mutations", values.names(children[1]), children[0])

    def users(self, children: list[Any]) -> _Field:
        """`buf0.users = [NodeUser(...)]`."""
        return _Field("users", values.users(children[1]), children[0])

    def _fields(self, name: str, entries: Iterable[_Field]) -> dict[str, Any]:
        """Entries by field: each at most once, each under its owner's name."""
        fields: dict[str, Any] = {}
        for entry in entries:
            if entry.name in fields:
                raise NodeError(
                    position_of(entry.owner), f"expected the next node, found the same entry of {name} again"
                )
            fields[entry.name] = entry.value
            if entry.owner is not None:
                self.same.append((str(name), entry.owner))
        return fields


class NodeBuilder(_BufferBuilder):
    """Scheduler nodes (torch/_inductor/scheduler.py, `BaseSchedulerNode.debug_str` and `debug_str_extra`).

    Text spliced in from another node fits the grammar too, so `same` collects (name, place that must repeat it) for
    the caller to compare: names are known only once a shape's numbers are.
    """

    def node(self, children: list[Any]) -> DumpNode:
        """The whole node."""
        header, *entries = children
        name, node_class, classes, place = header
        owned = [entry for entry in entries if isinstance(entry, _Field) and entry.name not in ("layouts", "extra")]
        fields = self._fields(name, owned)
        layouts = tuple(entry.value for entry in entries if isinstance(entry, _Field) and entry.name == "layouts")
        unknown = [entry for entry in entries if isinstance(entry, _Field) and entry.name == "extra"]
        self.same += [(str(name), entry.owner) for entry in unknown if entry.owner is not None]
        node_users = fields.pop("users", ())
        low, high = fields.pop("min_distance", None), fields.pop("max_distance", None)
        if "buffers" not in fields and _is_one_buffer(node_class, classes):
            layout = dict(layouts).get(str(name))
            buffer = DumpBuffer(str(name), classes[0], layout, users=node_users, location=place)
            fields["buffers"] = (buffer,)
        return DumpNode(
            str(name),
            node_class,
            classes,
            distances=(low, high),
            layouts=layouts,
            extra=tuple(entry.value for entry in unknown),
            location=place,
            **fields,
        )

    def header(self, children: list[Token]) -> _Header:
        """`op0_op1: FusedSchedulerNode(SchedulerNode,SchedulerNode)`."""
        name, node_class, *inner = children
        return _Header(name, str(node_class), tuple(map(str, inner)), _place(name))

    def writes(self, children: list[Any]) -> _Field:
        """`op0.writes = [MemoryDep(...)]`."""
        return _Field("writes", values.deps(children[1]), children[0])

    def unmet(self, children: list[Any]) -> _Field:
        """`op0.unmet_dependencies = [...]`."""
        return _Field("unmet", values.deps(children[1]), children[0])

    def met(self, children: list[Any]) -> _Field:
        """`op0.met_dependencies = [...]`."""
        return _Field("met", values.deps(children[1]), children[0])

    def min_distance(self, children: list[Token]) -> _Field:
        """`op0.min_input_distance = 0`."""
        return _Field("min_distance", _distance(children[1]), children[0])

    def max_distance(self, children: list[Token]) -> _Field:
        """`op0.max_input_distance = 0`."""
        return _Field("max_distance", _distance(children[1]), children[0])

    def node_users(self, children: list[Any]) -> _Field:
        """`buf0.users = [...]` of a node (up to torch 2.4)."""
        return _Field("users", values.users(children[1]), children[0])

    def outputs(self, children: list[Any]) -> _Field:
        """`op0.outputs = [ ... ]`."""
        owner, *buffers = children
        return _Field("buffers", tuple(buffers), owner)

    def kernel(self, children: list[Token]) -> _Field:
        """`op0.node.kernel = extern_kernels.mm`; None where the node calls nothing."""
        return _Field("kernel", None if children[1] == "None" else str(children[1]), children[0])

    def device(self, children: list[Token]) -> _Field:
        """`op0.group.device = cuda:0`."""
        return _Field("device", str(children[1]), children[0])

    def iteration(self, children: list[Token]) -> _Field:
        """`op0.group.iteration = ((32,), (64,))`."""
        return _Field("iteration", _balanced(children[1]), children[0])

    def sizes(self, children: list[Token]) -> _Field:
        """`op0.sizes = ([32], [64])`."""
        return _Field("sizes", _balanced(children[1]), children[0])

    def member_names(self, children: list[Any]) -> _Field:
        """`buf2_buf3.snodes = ['buf2', 'buf3']` (torch 2.0)."""
        return _Field("member_names", values.names(children[1]), children[0])

    def bare_member_names(self, children: list[Any]) -> _Field:
        """`snodes = ['buf2', 'buf3']` (torch 2.0)."""
        return _Field("member_names", values.names(children[1]), None)

    def unknown(self, children: list[Token]) -> _Field:
        """An attribute that nobody knows, verbatim."""
        return _Field("extra", (children[1][1:], children[2][1:].strip()), children[0])

    def bare_layout(self, children: list[Any]) -> _Field:
        """`arg0_1_layout = FixedLayout(...)`."""
        return _Field("layouts", (children[0].removesuffix("_layout"), children[1]), children[0])

    def skipped(self, children: list[Token]) -> None:
        """A kernel's source inside the dump."""


def _is_one_buffer(node_class: str, inner: tuple[str, ...]) -> bool:
    """Up to torch 2.4 a node that is not fused is its buffer."""
    return len(inner) == 1 and inner[0] != "NoneType" and "Fused" not in node_class


def _arguments(bracket: Bracket) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    args = tuple(item.value.text for item in bracket.items if item.key is None)
    return args, tuple((item.key, item.value.text) for item in bracket.items if item.key is not None)


def _distance(text: Token) -> Any:
    value = number(str(text))
    return value if isinstance(value, int | Number) else None


def _balanced(text: Token) -> str:
    """Text that runs to the end of its line; a bracket left open means that the line was cut."""
    for opening, closing in ("()", "[]"):
        if text.count(opening) != text.count(closing):
            raise NodeError((text.end_pos or 0), f"expected balanced '{opening}{closing}' up to the end of the line")
    return str(text)


def _result(tokens: list[Token]) -> str | None:
    return str(tokens[0]) if tokens else None


def position_of(owner: str | None) -> int:
    """Where an entry's name stands in the node's text, if it came from there."""
    return start_of(owner) if isinstance(owner, Token) else 0


def _place(token: Token) -> Location:
    """Relative to the node's text, which knows neither its file nor its first line."""
    return Location("", token.line or 1, token.column or 1)
