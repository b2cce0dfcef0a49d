"""Can this interpreter generate code for a GPU that is not there? Asked before anything runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from analyzer.capture import interpreter
from analyzer.errors import CaptureError

TRITON_OF_TORCH = {
    (2, 7): "3.3.1",
    (2, 9): "3.5.1",
    (2, 13): "3.7.1",
    (2, 14): "3.8.0",
    (2, 15): "3.9.0",
}
"""The torch releases that were tried, each with the triton that its CUDA wheel is built for."""

OLDEST, OLDEST_SUPPORTED = (2, 7), (2, 14)
SUPPORTED, EXPERIMENTAL = "supported", "experimental"

_PROBE = """
import importlib.metadata, json, sys
import torch
try:
    triton = importlib.metadata.version("triton")
except importlib.metadata.PackageNotFoundError:
    triton = None
facts = {"torch": torch.__version__, "cuda": torch.backends.cuda.is_built(), "triton": triton, "platform": sys.platform,
         "hip": getattr(torch.version, "hip", None)}
sys.stdout.write("\\n" + json.dumps(facts))
"""


@dataclass(frozen=True, slots=True)
class Support:
    """How far a capture without a device can be trusted with this torch. `notes`: why it is not `supported`."""

    level: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Installed:
    """What an interpreter has. `cuda`: torch was built with CUDA."""

    torch: str
    cuda: bool
    triton: str | None
    platform: str = "linux"
    hip: str | None = None

    @property
    def release(self) -> tuple[int, int]:
        """(major, minor) of torch."""
        major, minor = self.torch.split(".")[:2]
        return int(major), int("".join(letter for letter in minor if letter.isdigit()))


def check(python: str) -> Support:
    """Ask an interpreter. CaptureError when it cannot do it at all, with what is missing."""
    return judge(ask(python), python)


@lru_cache(maxsize=8)
def ask(python: str) -> Installed:
    """Import torch in another interpreter and look around. CaptureError when that fails."""
    facts = interpreter.answer(python, _PROBE)
    return Installed(facts["torch"], facts["cuda"], facts["triton"], facts["platform"], facts["hip"])


def judge(found: Installed, python: str = "python") -> Support:
    """What can be expected of an interpreter that has this. CaptureError for what was never going to work."""
    expected = TRITON_OF_TORCH.get(found.release)
    if found.platform != "linux":
        raise CaptureError(
            f"code for a GPU needs Linux, for triton; this is {found.platform}", "Capture in a Linux container."
        )
    if found.hip is not None:
        raise CaptureError("this torch is built for ROCm", "Use a CUDA or CPU wheel of torch.")
    if found.release < OLDEST:
        raise CaptureError(f"torch {found.torch} is too old for --target cuda", "Use torch 2.14 or newer.")
    if found.triton is None:
        wanted = f"triton=={expected}" if expected else "triton"
        raise CaptureError(
            f"{python} has no triton, which Inductor's GPU code is written for", f"{python} -m pip install {wanted}"
        )
    return _level(found, expected)


def _level(found: Installed, expected: str | None) -> Support:
    notes = []
    if found.release < OLDEST_SUPPORTED:
        notes.append(f"torch {found.torch} is older than 2.14, the first release with all that is needed")
    if not found.cuda:
        notes.append("this wheel of torch has no CUDA: the device guard is a stand-in, and cuDNN's version is unknown")
    if expected is None:
        notes.append(f"torch {found.torch} was never tried")
    elif found.triton != expected:
        notes.append(f"torch {found.torch} goes with triton {expected}, this is {found.triton}")
    return Support(EXPERIMENTAL if notes else SUPPORTED, tuple(notes))
