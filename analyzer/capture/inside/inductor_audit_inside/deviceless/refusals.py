"""Why a program could not go on without a device: the operator's name, and what to do about it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from inductor_audit_inside.deviceless.patch import Patch

REFUSALS: list[dict[str, str]] = []
"""`operator` and `advice` of what ended the program, for the record of the process."""

_FAKE_KERNEL = "give it a fake kernel: torch.library.register_fake(NAME)"
_ADVICE = {
    "UnsupportedOperatorException": _FAKE_KERNEL,
    "UnsupportedFakeTensorException": _FAKE_KERNEL,
    "DynamicOutputShapeException": "the shape of its output depends on values, which nobody computed: keep it out",
    "DataDependentOutputException": "it reads a value, which nobody computed: keep it out",
}
_BY_MESSAGE = (
    ("NCCL", "torch.distributed", "NCCL needs devices: use one process, or the `fake` backend of torch.distributed"),
    ("data pointer", "a CUDA extension", f"it reads memory that is not there; {_FAKE_KERNEL}"),
    ("Torch not compiled with CUDA", "torch.cuda", "this wheel has no CUDA: use a CUDA wheel of torch 2.14 or newer"),
    ("CUDA error", "a function of the CUDA runtime", "keep what needs the driver out of the captured part"),
    ("dummy base class", "torch.cuda", "keep what needs the driver out of the captured part"),
    ("there is no device here", "triton", "the program launches a kernel outside torch.compile"),
    ("NVIDIA driver", "torch.cuda", "this function of torch.cuda needs a device: keep it out of the captured part"),
    ("Cannot get CUDA generator", "torch.Generator", "make the generator on the CPU, or leave it to torch.manual_seed"),
)


def refuse_nccl(distributed: Any, patch: Patch) -> None:
    """An error in Python instead of an abort in C++."""

    class Refused:
        """Stands in for the process group and for its options, whichever is asked for first."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            patch.hits += 1
            raise RuntimeError("NCCL finds no device")

    for name in ("ProcessGroupNCCL", "ProcessGroupNCCL2", "ProcessGroupNCCLLazy"):
        if hasattr(distributed, name):
            setattr(distributed, name, type(name, (Refused,), {"Options": Refused}))


def explain_at_exit() -> None:
    """Add to the traceback of an exception that ends the program."""
    before = sys.excepthook

    def told(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> Any:
        before(kind, error, trace)
        for operator, advice in list(explain(error))[:1]:
            REFUSALS.append({"operator": operator, "advice": advice})
            print(f"inductor-audit: {operator} cannot run without a device; {advice}", file=sys.stderr)  # noqa: T201

    sys.excepthook = told


def explain(error: BaseException | None) -> Iterator[tuple[str, str]]:
    """(operator, advice) for the exception, or for one of its causes."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        advice = _ADVICE.get(type(error).__name__)
        if advice is not None:
            name = str(getattr(error, "func", None) or error).splitlines()[0]
            yield name, advice.replace("NAME", repr(name.removesuffix(".default").replace(".", "::", 1)))
        for part, operator, told in _BY_MESSAGE:
            if part in str(error):
                yield operator, told.replace("NAME", "its name")
        error = error.__cause__ or error.__context__
