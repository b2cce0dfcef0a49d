"""Runs a user's command under a hook that makes TorchInductor tell what it does; the command itself stays as it is.

The only package that causes torch to be imported, and only in the child process.
"""

from __future__ import annotations

from analyzer.capture.request import (
    CaptureRequest,
    CaptureResult,
    OnProgress,
    Progress,
    Setting,
    module_command,
    script_command,
)
from analyzer.capture.run import capture
from analyzer.capture.settings import parse_setting

__all__ = [
    "CaptureRequest",
    "CaptureResult",
    "OnProgress",
    "Progress",
    "Setting",
    "capture",
    "module_command",
    "parse_setting",
    "script_command",
]
