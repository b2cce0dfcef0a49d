"""Why a program could not go on without a device: the operator's name, and what to do about it."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from inductor_audit_inside.deviceless.patch import Patch

REFUSALS: list[dict[str, str]] = []
"""`operator`, `place` (FILE:LINE of the program) and `advice` of what ended it, for the record of the process."""

_FAKE_KERNEL = "give it a fake kernel: torch.library.register_fake(NAME)"
_ADVICE = {
    "UnsupportedOperatorException": _FAKE_KERNEL,
    "UnsupportedFakeTensorException": _FAKE_KERNEL,
    "DynamicOutputShapeException": "the shape of its output depends on values, which nobody computed: keep it out",
    "DataDependentOutputException": "it reads a value, which nobody computed: keep it out",
}
_KEEP_OUT = "keep what needs the driver out of the captured part"
_BY_MESSAGE = (
    (r"no fake impl registered for .*?([\w.]+::[\w.]+)", None, _FAKE_KERNEL),
    (r"no device here: (\S+) came to a kernel", None, "it computes on the device as soon as it is called: keep it out"),
    (r"no device here", "triton", "the program launches a kernel outside torch.compile"),
    (r"NCCL", "torch.distributed", "NCCL needs devices: use one process, or the `fake` backend of torch.distributed"),
    (
        r"DDP expects same model",
        "DistributedDataParallel",
        "it compares ranks: leave it out, or use the `fake` backend",
    ),
    (r"data pointer|not allocated yet", "a CUDA extension", f"it reads memory that is not there; {_FAKE_KERNEL}"),
    (r"Torch not compiled with CUDA", "torch.cuda", "this wheel has no CUDA: use a CUDA wheel of torch 2.14 or newer"),
    (
        r"Cannot get CUDA generator",
        "torch.Generator",
        "make the generator on the CPU, or leave it to torch.manual_seed",
    ),
    (r"CUDA error", "a function of the CUDA runtime", _KEEP_OUT),
    (r"dummy base class", "torch.cuda", _KEEP_OUT),
    (r"NVIDIA driver", "torch.cuda", f"this function of torch.cuda needs a device: {_KEEP_OUT}"),
    (
        r"while FakeTensorMode is active",
        "a nested tensor",
        "its lengths are values, which nobody computed: keep it out",
    ),
    (r"pickle local object 'WeakValueDict", "pickle", "there are no values to keep: leave it out, or use torch.save"),
    (
        r"loop at .* waits for a value",
        "a loop",
        "give it an end that does not depend on a value, such as a number of steps",
    ),
)
"""What a message says, the operator (None: its first group), and what to do."""


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
            place = _place(trace)
            REFUSALS.append({"operator": operator, "place": place, "advice": advice})
            text = f"inductor-audit: {operator} cannot run without a device ({place}); {advice}"
            print(text, file=sys.stderr)  # noqa: T201 - below the traceback

    sys.excepthook = told


_PACKAGES = ("site-packages", "inductor_audit_inside")


def _place(trace: TracebackType | None) -> str:
    """The innermost line of the program: not of the packages that it calls, if there is one."""
    frames = traceback.extract_tb(trace)
    own = [frame for frame in frames if not any(part in frame.filename for part in _PACKAGES)] or frames
    return f"{own[-1].filename}:{own[-1].lineno}" if own else "?"


def explain(error: BaseException | None) -> Iterator[tuple[str, str]]:
    """(operator, advice) for the exception, or for one of its causes."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        advice = _ADVICE.get(type(error).__name__)
        if advice is not None:
            name = str(getattr(error, "func", None) or error).splitlines()[0]
            yield name, advice.replace("NAME", repr(name.removesuffix(".default").replace(".", "::", 1)))
        for said, operator, told in _BY_MESSAGE:
            found = re.search(said, str(error))
            if found is not None:
                name = operator or found[1]
                yield name, told.replace("NAME", "its name" if operator else repr(name))
        error = error.__cause__ or error.__context__
