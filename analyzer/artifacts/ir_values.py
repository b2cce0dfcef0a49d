"""What the Python values of an IR dump say: dependencies, layouts, users, sizes."""

from __future__ import annotations

import re

from analyzer.artifacts.ir_terms import NodeError, Term
from analyzer.artifacts.shapes import number
from analyzer.model import Dep, Layout, NodeUser, Size

_CALLEE = re.compile(r"[A-Za-z_][\w.]*")


def names(term: Term) -> tuple[str, ...]:
    """A list of quoted names: `['buf0', 'buf1']`."""
    return tuple(value.text for value in _listed(term, "a list of names"))


def _listed(term: Term, wanted: str) -> tuple[Term, ...]:
    """The items of a list; an item with a name is none."""
    named = next((item for item in term.items or () if item.key is not None), None)
    if named is not None:
        raise NodeError(named.value.start, f"expected {wanted}, found a value for {named.key!r}")
    return term.values()


def _is_call(term: Term) -> bool:
    """Whether it is one name and its arguments, with nothing before it."""
    return _CALLEE.fullmatch(term.head) is not None


def sizes(term: Term) -> tuple[Size, ...]:
    """A list or tuple of sizes: `[2, s33*s77]`."""
    return tuple(number(value.text) for value in term.values())


def ranges(term: Term) -> tuple[tuple[str, Size], ...]:
    """Index variables and what they run to: `{c0: 32, c1: s77}`."""
    return tuple((name, number(value.text)) for name, value in term.keywords().items())


def deps(term: Term) -> tuple[Dep, ...]:
    """A list of dependencies (torch/_inductor/dependencies.py)."""
    return tuple(_dep(value) for value in _listed(term, "a list of dependencies"))


def _dep(term: Term) -> Dep:
    if not _is_call(term):
        raise NodeError(term.start, "expected a dependency such as MemoryDep('buf0', c0, {c0: 8})")
    keywords = term.keywords()
    positional = dict(zip(("name", "index", "size", "mode"), term.values(), strict=False))
    fields = {**positional, **keywords}
    name = fields.pop("name", None)
    if name is None:
        raise NodeError(term.start, f"expected the buffer's name in {term.head}")
    index, size, mode = (fields.pop(key, None) for key in ("index", "size", "mode"))
    return Dep(
        kind=term.head,
        buffer=name.text,
        index=index.text if index else None,
        ranges=_dep_ranges(size) if size else (),
        mode=None if mode is None or mode.text == "None" else mode.text,
        extra=tuple((key, value.text) for key, value in fields.items()),
    )


def _dep_ranges(size: Term) -> tuple[tuple[str, Size], ...]:
    """Torch 2.0 prints `size=(s0, 384)` for the variables c0 and c1; later versions print `{c0: s0, c1: 384}`."""
    if size.text.startswith("{"):
        return ranges(size)
    return tuple((f"c{position}", value) for position, value in enumerate(sizes(size)))


def users(term: Term) -> tuple[NodeUser, ...]:
    """A list of `NodeUser(node=SchedulerNode(name='op1'), can_inplace=False, is_weak=False)`."""
    return tuple(_user(value) for value in _listed(term, "a list of users"))


def _user(term: Term) -> NodeUser:
    keywords = term.keywords()
    node = keywords.get("node")
    if node is None or not _is_call(term):
        raise NodeError(term.start, "expected NodeUser(node=..., can_inplace=...)")
    name = node.keywords().get("name", node)
    flags = (keywords[key].text == "True" if key in keywords else False for key in ("can_inplace", "is_weak"))
    return NodeUser(node.head or node.text, name.text, *flags)


def layout(term: Term) -> Layout:
    """A layout of torch/_inductor/ir.py; every class, and what has no such form, keeps its text."""
    keywords = term.keywords()
    device, dtype = _device_and_dtype(term)
    size, stride, offset = (keywords.get(key) for key in ("size", "stride", "offset"))
    return Layout(
        kind=term.head or _class_name(term.text),
        text=term.text,
        device=device,
        dtype=dtype,
        size=None if size is None else sizes(size),
        stride=None if stride is None else sizes(stride),
        offset=None if offset is None else number(offset.text),
    )


def _device_and_dtype(term: Term) -> tuple[str | None, str | None]:
    """The device is a first string, or `device=device(type='cuda', index=0)`; the dtype is `torch.float32`."""
    device = next((value.text for value in term.values() if value.quoted), None)
    dtype = next((value.text for value in term.values() if value.text.startswith("torch.")), None)
    keyword = term.keywords().get("device")
    return (device or (_device(keyword) if keyword else None)), dtype


def _device(term: Term) -> str:
    parts = term.keywords()
    if "type" not in parts:
        return term.text
    return ":".join(parts[key].text for key in ("type", "index") if key in parts)


def _class_name(text: str) -> str:
    """`NoneLayout` of `<torch._inductor.ir.NoneLayout object at 0x7f..>` (torch 2.5)."""
    words = re.findall(r"[\w.]+", text)
    return words[0].rpartition(".")[2] if words else text
