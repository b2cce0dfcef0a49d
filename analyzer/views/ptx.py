"""Registers, spills and shared memory of Triton kernels, as ptxas estimates them without a device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from analyzer.views.text import byte_text, cut, headed, more, plain, shortened

if TYPE_CHECKING:
    from analyzer.artifacts.ptx import KernelEstimate, PtxEstimates

_SHOWN = 3


def estimate_lines(record: PtxEstimates | None, full: bool) -> Iterator[Text]:
    """One line per kernel, those that spill or need most registers first; nothing where nobody asked for estimates."""
    kernels = sorted(record.kernels, key=_need, reverse=True) if record is not None else []
    shown, rest = cut(kernels, _SHOWN, full)
    for kernel in shown:
        name = plain(kernel.name if full else shortened(kernel.name, 40))
        if kernel.error is not None:
            yield headed("Not estimated: ", f"{name}: {plain(kernel.error)}", "yellow")
        else:
            yield headed("Estimated: ", f"{name} {_figures(kernel)}{_config(kernel) if full else ''}")
    yield from more(rest, "estimate")


def _need(kernel: KernelEstimate) -> tuple[bool, int, int]:
    return kernel.error is not None, _spilled(kernel) or 0, kernel.registers or 0


def _spilled(kernel: KernelEstimate) -> int | None:
    if kernel.spill_stores is None or kernel.spill_loads is None:
        return None
    return kernel.spill_stores + kernel.spill_loads


def _figures(kernel: KernelEstimate) -> str:
    """`16 registers, no spills, 0 B shared`."""
    spilled = _spilled(kernel)
    spills = "no spills" if spilled == 0 else f"{byte_text(spilled)} spilled"
    registers = "?" if kernel.registers is None else str(kernel.registers)
    return f"{registers} registers per thread, {spills}, {byte_text(kernel.shared_bytes)} shared per block"


def _config(kernel: KernelEstimate) -> str:
    """Which configuration was compiled: a device would have timed all of them."""
    parts = [f"{key}={value}" for key, value in kernel.config.items()]
    told = "; ".join((", ".join(parts), *(_of_several(kernel.configs))))
    return f" ({plain(told)})" if parts else ""


def _of_several(number: int | None) -> tuple[str, ...]:
    return (f"first of {number} configurations",) if number is not None and number > 1 else ()
