"""The wrapper's functions (`call`, partitions, branches) as steps in execution order.

torch/_inductor/codegen/wrapper.py writes every statement form that is known here; a statement of any other form is
reported at its place.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from analyzer.artifacts.kernel_comment import CommentBlock, excerpt_of, read_comment
from analyzer.artifacts.python_source import PythonSource
from analyzer.artifacts.wrapper_expr import (
    allocates,
    base_variable,
    call_kind,
    callee_of,
    copied_into,
    dotted,
    is_scalar,
    kernel_name,
    names_of,
    sizes_of,
    tensors_in,
)
from analyzer.model import Allocation, Free, KernelCall, KernelDef, Location, Problem, Rename, Step

_TAIL = re.compile(r"#\s*(reuse|alias)\b")
_NUMBER = re.compile(r"(?:s|u|zuf|f|ks|ps)\d+$|.*numel\d*$|.*_(?:size|stride|grid)\d*$")
_FILLER = re.compile(
    r"assert_|args\.clear$|\w+_args\.clear$|torch\.(?:cuda|xpu|mtia|_C|mps|accelerator)\.|start_graph$|end_graph$|print$"
    r"|run_intermediate_hooks$|torch\._check|_check|_debug|gc\.|sync|async_compile\.|torch\.Event$|nvtx\."
    r"|_d2h_event_\w+\.|track_tensor$|check_memory_step$"
)
_STREAMS = re.compile(r"get_raw_stream$|_get_stream_by_index$|get_\w*stream$|\w*[Ss]tream$")
_DESCRIPTORS = re.compile(r"triton\.tools\.[\w.]*(?:TensorDescriptor\.from_tensor|create_\dd_tma_descriptor)$")
_LIST_METHODS = {"append", "extend"}
"""What gathers the results of a loop: `buf5[2].append(buf5[0])`."""
_BLOCKS = ast.With | ast.If | ast.While | ast.For


@dataclass(slots=True)
class Wrapper:
    """What the wrapper's functions say."""

    steps: list[Step] = field(default_factory=list)
    inputs: tuple[str, ...] = ()
    returns: tuple[str | None, ...] = ()
    problems: list[Problem] = field(default_factory=list)


@dataclass(slots=True)
class WrapperReader:
    """Walks the functions; `pending` are the comments that belong to the next call."""

    source: PythonSource
    kernels: Mapping[str, KernelDef]
    functions: Mapping[str, ast.FunctionDef]
    file: str
    result: Wrapper = field(default_factory=Wrapper)
    scope: str = "call"
    symbols: set[str] = field(default_factory=set)
    lists: dict[str, ast.expr] = field(default_factory=dict)
    pending: CommentBlock = field(default_factory=CommentBlock)
    visited: set[str] = field(default_factory=set)

    def read(self) -> Wrapper:
        """Walk `call` first, then what it never entered; an entered function's steps stand where it is entered."""
        for name in sorted(self.functions, key=lambda name: name != "call"):
            self._enter(name)
        return self.result

    def _enter(self, name: str) -> None:
        function = self.functions.get(name)
        if function is None or name in self.visited:
            return
        self.visited.add(name)
        outer = self.scope, self.symbols
        self.scope, self.symbols = name, set()
        try:
            self._block(function.body, function.lineno)
        except RecursionError:
            self._problem(function, "expected a function without deeply nested blocks")
        self.scope, self.symbols = outer

    def _block(self, statements: Sequence[ast.stmt], line: int) -> None:
        """Walk statements; `line` is the last line before them, so that comments between are seen."""
        for statement in statements:
            self._comments(line, statement.lineno)
            self._statement(statement)
            line = statement.end_lineno or statement.lineno

    def _comments(self, after: int, before: int) -> None:
        numbers = [n for n in range(after + 1, before) if self.source.lines[n - 1].lstrip().startswith("#")]
        if numbers:
            lines = [self.source.lines[number - 1] for number in numbers]
            self.pending = read_comment(lines)
            self.result.problems += self.pending.problems(self.file, lines, numbers)

    # ------------------------------------------------------------------------------------------------- statements

    def _statement(self, statement: ast.stmt) -> None:
        before = self.pending
        known = self._read(statement)
        if not known:
            self._problem(statement, "expected a statement that the wrapper code generator writes")
        if known != "prelude" and self.pending is before:
            self.pending = CommentBlock()

    def _problem(self, statement: ast.stmt, message: str) -> None:
        line = self.source.lines[statement.lineno - 1]
        lines = (statement.end_lineno or statement.lineno) - statement.lineno + 1
        self.result.problems.append(Problem(self._at(statement), message, excerpt_of(line), lines))

    def _read(self, statement: ast.stmt) -> str:
        """Read one statement; "" if its form is unknown, "prelude" if comments before it still wait for their call."""
        if isinstance(statement, _BLOCKS):
            return self._compound(statement)
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            return self._assign(statement, statement.targets[0], statement.value)
        if isinstance(statement, ast.Expr):
            return self._expression(statement)
        if isinstance(statement, ast.Delete):
            return self._delete(statement)
        if isinstance(statement, ast.Return):
            return self._return(statement)
        plain = ast.Pass | ast.Assert | ast.Raise | ast.Global | ast.Import | ast.ImportFrom | ast.Break
        return "known" if isinstance(statement, plain) else ""

    def _compound(self, statement: ast.With | ast.If | ast.While | ast.For) -> str:
        if isinstance(statement, ast.For) and names_of(statement.target) == ("kernel",):
            return "known"  # GPU code for the C++ wrapper up to torch 2.9: a first pass in Python saves its kernels
        bodies = [statement.body] if isinstance(statement, ast.With) else [statement.body, statement.orelse]
        line = statement.lineno
        for body in filter(None, bodies):
            self._block(body, line)
            line = body[-1].end_lineno or line
        return "known"

    def _delete(self, statement: ast.Delete) -> str:
        """`del buf0`; `buf1 = buf0; del buf0  # reuse` frees nothing, the memory lives on as buf1."""
        if _TAIL.search(self.source.tail(statement)):
            return "known"
        for name in (base_variable(target) for target in statement.targets):
            if name and not name.endswith("_args"):
                self.result.steps.append(Free(name, self.scope, self._at(statement)))
        return "known"

    def _return(self, statement: ast.Return) -> str:
        if self.scope == "call" and statement.value is not None:
            value = statement.value
            elements = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
            self.result.returns = tuple(self._tensor(element) or None for element in elements)
        return "known"

    def _tensor(self, node: ast.expr) -> str:
        name = base_variable(node)
        return "" if name in self.symbols else name

    def _expression(self, statement: ast.Expr) -> str:
        value = statement.value
        if isinstance(value, ast.Constant):
            return "known"
        if not isinstance(value, ast.Call):
            return ""
        callee = callee_of(value)
        kind = call_kind(callee, self.kernels)
        if kind:
            self._call(statement, value, kind, copied_into(value))
            return "known"
        if callee.endswith((".zero_", ".fill_")):
            return "prelude"
        gathers = isinstance(value.func, ast.Attribute) and value.func.attr in _LIST_METHODS
        return "known" if gathers or _FILLER.match(callee) else ""

    # ------------------------------------------------------------------------------------------------- assignments

    def _assign(self, statement: ast.Assign, target: ast.expr, value: ast.expr) -> str:
        if isinstance(target, ast.Tuple | ast.List):
            return self._unpack(statement, target, value)
        if isinstance(target, ast.Subscript):
            return self._entered(statement, target, value) or "known"
        if not isinstance(target, ast.Name):
            return ""
        if isinstance(value, ast.Call):
            return self._assign_call(statement, target, value)
        if isinstance(value, ast.Name | ast.Subscript):
            return self._rename(statement, target.id, value)
        return self._assign_plain(target.id, value)

    def _assign_plain(self, name: str, value: ast.expr) -> str:
        """Numbers, None, and lists: `u0 + 1`, `buf3 = None`, `partition0_args = [arg0_1]`, `buf1 = [None] * 2`."""
        if isinstance(value, ast.Constant | ast.List | ast.Tuple | ast.Dict) or _is_list_of_none(value):
            self.lists[name] = value
            return "known"
        if not is_scalar(value):
            return ""
        self.symbols.add(name)
        return "prelude"

    def _unpack(self, statement: ast.Assign, target: ast.expr, value: ast.expr) -> str:
        if isinstance(value, ast.Name) and value.id == "args":
            if self.scope == "call":
                self.result.inputs = names_of(target)
            return "known"
        if isinstance(value, ast.Call) and (kind := call_kind(callee_of(value), self.kernels)):
            self._call(statement, value, kind, names_of(target))
            return "known"
        return self._entered(statement, target, value)

    def _entered(self, statement: ast.Assign, target: ast.expr, value: ast.expr) -> str:
        """`buf1 = true_graph_0(true_graph_0_args)` and `(buf0,) = self.partitions[0](partition0_args)`."""
        if not isinstance(value, ast.Call):
            return ""
        if isinstance(value.func, ast.Subscript) and dotted(value.func.value) == "self.partitions":
            self._enter(f"partition_{self.source.segment(value.func.slice)}")
            return "known"
        callee = callee_of(value)
        if callee not in self.functions:
            return ""
        self._call(statement, value, "subgraph", names_of(target))
        self._enter(callee)
        return "known"

    def _assign_call(self, statement: ast.Assign, target: ast.Name, value: ast.Call) -> str:
        callee = callee_of(value)
        if allocates(callee):
            return self._allocation(statement, target.id, callee, value)
        if callee in ("reinterpret_tensor", "as_strided"):
            return self._rename(statement, target.id, value)
        if _DESCRIPTORS.match(callee):
            self.lists[target.id] = value.args[0]
            return "known"
        if kind := call_kind(callee, self.kernels):
            self._call(statement, value, kind, (target.id,))
            return "known"
        return self._assign_other(statement, target, value)

    def _assign_other(self, statement: ast.Assign, target: ast.Name, value: ast.Call) -> str:
        """Streams, alignment, numbers read from tensors, and results of branches."""
        callee = callee_of(value)
        if _STREAMS.search(callee):
            return "prelude"
        if callee == "copy_if_misaligned" or _FILLER.match(callee):
            return "known"
        if is_scalar(value):
            self.symbols.add(target.id)
            return "known"
        return self._entered(statement, target, value)

    def _allocation(self, statement: ast.Assign, buffer: str, via: str, call: ast.Call) -> str:
        given = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        pool = via.endswith("alloc_from_pool")
        size, stride, dtype = (3, 4, 2) if pool else (0, 1, 2)
        args = dict(enumerate(call.args))
        type_node = given.get("dtype", args.get(dtype))
        self.result.steps.append(
            Allocation(
                buffer=buffer,
                via=via,
                size=sizes_of(args.get(size), self.source),
                stride=sizes_of(args.get(stride), self.source),
                dtype=dotted(type_node) if type_node is not None else None,
                scope=self.scope,
                location=self._at(statement),
            )
        )
        return "known" if buffer.startswith("buf") else "prelude"

    def _rename(self, statement: ast.Assign, new: str, value: ast.expr) -> str:
        """`buf1 = buf0; del buf0  # reuse`, `buf2 = reinterpret_tensor(..)  # alias`, `buf9 = buf8[0]`, `s0 = x`."""
        old = self._tensor(value)
        if not old or _NUMBER.match(new):
            self.symbols.add(new)
            return "prelude"
        if new.startswith("should_loop"):
            return "known"
        tail = _TAIL.search(self.source.tail(statement))
        kind = tail[1] if tail else ("item" if isinstance(value, ast.Subscript) else "view")
        self.result.steps.append(Rename(new, old, kind, self.scope, self._at(statement), _item_index(value)))
        return "known"

    # ------------------------------------------------------------------------------------------------------- calls

    def _call(self, statement: ast.stmt, call: ast.Call, kind: str, targets: tuple[str, ...]) -> None:
        callee = kernel_name(callee_of(call))
        given = [(keyword.arg or "**", keyword.value) for keyword in call.keywords]
        args = [self.lists.get(arg.id, arg) if isinstance(arg, ast.Name) else arg for arg in call.args]
        outputs = [name for key, value in given if key == "out" for name in names_of(value)]
        block, self.pending = self.pending, CommentBlock()
        comment, handle = block.of_call(owned=block.handle is not None and block.handle[0] == callee)
        self.result.steps.append(
            KernelCall(
                callee=callee,
                kind=kind,
                args=tuple(self.source.segment(arg) for arg in call.args),
                kwargs=tuple((key, self.source.segment(value)) for key, value in given),
                buffers=tuple(self._tensor(arg) for arg in args),
                outputs=tuple(outputs) or targets,
                mentions=tensors_in([*args, *(value for _, value in given)], self.symbols),
                handle=handle,
                comment=comment,
                scope=self.scope,
                location=self._at(statement),
            )
        )

    def _at(self, statement: ast.stmt) -> Location:
        return Location(self.file, statement.lineno, self.source.column(statement))


def _is_list_of_none(value: ast.expr) -> bool:
    """`[None] * 2`, the results of a branch before it runs."""
    return isinstance(value, ast.BinOp) and isinstance(value.left, ast.List)


def _item_index(value: ast.expr) -> int | None:
    """The number in `buf8[0]`."""
    index = value.slice if isinstance(value, ast.Subscript) else None
    return index.value if isinstance(index, ast.Constant) and isinstance(index.value, int) else None
