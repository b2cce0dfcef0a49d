"""What FX graphs say beside the code: annotations (`f32[8, 32][32, 1]cuda:0`, `Sym(s33)`) and source comments.

torch/fx/graph.py (`CodeGen._gen_python_code`) writes them from `meta["val"]`, with the dtype names of
torch/utils/_dtype_abbrs.py; stride and device only where `print_readable` was asked for them (trace logs, TORCH_LOGS).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from analyzer.model import Size, SourceSite

DTYPES = {
    "f64": "torch.float64",
    "f32": "torch.float32",
    "f16": "torch.float16",
    "bf16": "torch.bfloat16",
    "f8e4m3fn": "torch.float8_e4m3fn",
    "f8e5m2": "torch.float8_e5m2",
    "f8e4m3fnuz": "torch.float8_e4m3fnuz",
    "f8e5m2fnuz": "torch.float8_e5m2fnuz",
    "f8e8m0fnu": "torch.float8_e8m0fnu",
    "f4e2m1fnx2": "torch.float4_e2m1fn_x2",
    "i8": "torch.int8",
    "i16": "torch.int16",
    "i32": "torch.int32",
    "i64": "torch.int64",
    "u8": "torch.uint8",
    "u16": "torch.uint16",
    "u32": "torch.uint32",
    "u64": "torch.uint64",
    "b8": "torch.bool",
    "c32": "torch.complex32",
    "c64": "torch.complex64",
    "c128": "torch.complex128",
    "bc32": "torch.bcomplex32",
    "b1x8": "torch.bits1x8",
    "b2x4": "torch.bits2x4",
    "b4x2": "torch.bits4x2",
    "b8x1": "torch.bits8",
    "b16x1": "torch.bits16",
    "b16": "torch.bits16",
}
"""Short dtype names of torch 2.0 to 2.15; a name that is missing here stays as it is printed."""

_TENSOR = re.compile(
    r"(?P<wrapper>[A-Za-z_][\w.]*\()?"
    r"(?P<dtype>[a-z][a-z0-9]*)\[(?P<shape>[^\[\]]*)\](?:\[(?P<stride>[^\[\]]*)\])?"
    r"(?P<device>[a-z]+(?::\d+)?)?(?P<rest>.*)"
)
_DELIMITER = re.compile(r"""'[^'\\]*(?:\\.[^'\\]*)*'?|"[^"\\]*(?:\\.[^"\\]*)*"?|[()\[\]{},]""")
_LONGEST = 4096


@dataclass(frozen=True, slots=True)
class Annotation:
    """What an annotation says of a tensor; all None for symbols (`Sym(..)`) and for texts that are no tensor."""

    dtype: str | None = None
    shape: tuple[Size, ...] | None = None
    stride: tuple[Size, ...] | None = None
    device: str | None = None


@lru_cache(maxsize=4096)
def parse_annotation(text: str) -> Annotation:
    """Read one annotation without its quotes. Subclasses (`DTensor(f32[8][1]cpu, S(0))`) give their inner tensor."""
    match = _TENSOR.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None or not _closed_as_opened(match["wrapper"], match["rest"]):
        return Annotation()
    stride = match["stride"]
    return Annotation(
        dtype=DTYPES.get(match["dtype"], match["dtype"]),
        shape=dimensions(match["shape"]),
        stride=None if stride is None else dimensions(stride),
        device=match["device"],
    )


def dimensions(text: str) -> tuple[Size, ...]:
    """`8, s33*s77, Max(1, s0)` as ints and texts."""
    return tuple(_size(piece.strip()) for _, piece in split_top_level(text) if piece.strip())


def split_top_level(text: str) -> list[tuple[int, str]]:
    """Split at commas outside brackets and quotes; each piece with its offset. Unbalanced brackets are tolerated."""
    pieces, start, depth = [], 0, 0
    for match in _DELIMITER.finditer(text):
        char = match[0][0]
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == "," and depth <= 0:
            pieces.append((start, text[start : match.start()]))
            start = match.end()
    pieces.append((start, text[start:]))
    return pieces


def source_site(comment: str) -> SourceSite | None:
    """The place in `# File: f.py:10 in forward, code: return x`, also behind an annotation; None where it names none.

    torch/fx/graph.py, `_ParsedStackTrace.get_summary_str`; torch 2.0 leaves out ` in forward`.
    """
    _, found, rest = comment.partition("File: ")
    head, coded, code = rest.partition(", code: ")
    if not found or not coded:
        return None
    place, within, function = head.rpartition(" in ")
    if not within or "/" in function or "." in function:
        place, function = head, ""
    file, _, line = place.rpartition(":")
    if not file or not (line.isascii() and line.isdigit() and len(line) < 10):
        return None
    return SourceSite(file, int(line), function or None, code.rstrip() or None)


def _size(text: str) -> Size:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 20 else text


def _closed_as_opened(wrapper: str | None, rest: str) -> bool:
    return rest.startswith((")", ",")) if wrapper else not rest
