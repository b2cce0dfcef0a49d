"""The device that a capture generates code for without having it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from analyzer.capture import preflight, profile
from analyzer.capture.request import CaptureRequest
from analyzer.errors import UsageError


@dataclass(frozen=True, slots=True)
class AssumedDevice:
    """A profile, and how far this torch can be trusted with it."""

    profile: profile.Profile
    support: preflight.Support

    def request(self) -> dict[str, Any]:
        """What the hook reads in the child (inside/inductor_audit_inside/deviceless)."""
        return {
            "profile": {"name": self.profile.name, "figures": dict(self.profile.figures)},
            "support": {"level": self.support.level, "notes": list(self.support.notes)},
        }


def assumed_device(request: CaptureRequest) -> AssumedDevice | None:
    """The device of a request, None when it has no target.

    Raises UsageError for a target or profile that makes no sense, and CaptureError when the interpreter cannot do it.
    """
    if request.target is None:
        for given, option in ((request.profile is not None, "--profile"), (request.ptx, "--ptx")):
            if given:
                raise UsageError(f"{option} needs --target cuda", "Add --target cuda.")
        return None
    device = profile.find(request.target, request.profile)
    return AssumedDevice(device, preflight.check(request.python))
