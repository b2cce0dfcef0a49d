"""Which settings and switches a run needs, checked against the torch of the chosen interpreter before anything runs."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache

from analyzer import ablations
from analyzer.capture import interpreter
from analyzer.capture.request import CaptureRequest, Setting
from analyzer.errors import CaptureError, UsageError

CONFIG_MODULES = ("torch._inductor.config", "torch._functorch.config", "torch._dynamo.config")
_PROBE = """
import importlib, json, sys
import torch
keys = {name: sorted(importlib.import_module(name)._config) for name in sys.argv[1:]}
sys.stdout.write("\\n" + json.dumps({"torch": torch.__version__, "keys": keys}))
"""


@dataclass(frozen=True, slots=True)
class TorchInfo:
    """The torch of an interpreter: its version, and the full dotted keys of its configuration modules."""

    version: str
    keys: frozenset[str]

    @property
    def release(self) -> tuple[int, int]:
        """(major, minor)."""
        found = re.match(r"(\d+)\.(\d+)", self.version)
        if found is None:
            raise CaptureError(f"cannot read the torch version {self.version!r}")
        return int(found.group(1)), int(found.group(2))


@dataclass(frozen=True, slots=True)
class Plan:
    """What the hook is to do: settings with full keys, and run-time switches."""

    settings: tuple[Setting, ...] = ()
    switches: tuple[str, ...] = ()


def parse_setting(text: str) -> Setting:
    """`KEY=VALUE` of a command line; the value must be a Python literal (a bare word counts as text).

    Raises UsageError for anything else.
    """
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"not a setting: {text!r}", "Write KEY=VALUE, such as realize_reads_threshold=0.")
    return key.strip(), _literal(value.strip(), key.strip())


def _literal(value: str, key: str) -> str:
    try:
        return repr(ast.literal_eval(value))
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        if value.lower() in ("true", "false", "none"):
            return value.capitalize()
        if re.fullmatch(r"[A-Za-z][\w,.:/-]*", value):
            return repr(value)
    raise UsageError(f"the value of {key} is no Python literal: {value!r}", "Quote text: KEY='\"text\"'.")


@lru_cache(maxsize=8)
def ask_interpreter(python: str) -> TorchInfo:
    """Import torch in another interpreter and list its configuration keys. CaptureError when that fails."""
    found = interpreter.answer(python, _PROBE, *CONFIG_MODULES)
    keys = frozenset(f"{module}.{key}" for module, names in found["keys"].items() for key in names)
    return TorchInfo(found["torch"], keys)


def plan(request: CaptureRequest) -> Plan:
    """Settings and switches of a request; those given by hand come last and win.

    Raises UsageError for unknown ablations and keys, and for an ablation that this torch version does not have.
    """
    entries = [ablations.find(name) for name in request.ablations]
    baselines = [*entries, *(ablations.find(name) for name in request.baseline_of)]
    if not baselines and not request.settings:
        return Plan()
    torch = ask_interpreter(request.python)
    chosen = [setting for entry in baselines for setting in _available(entry.baseline, torch)]
    for entry in entries:
        chosen += _of_ablation(entry, torch)
    chosen += [(_full_key(key, torch), value) for key, value in request.settings]
    switches = dict.fromkeys(switch for entry in entries for switch in entry.switches)
    return Plan(tuple(dict(chosen).items()), tuple(switches))


def _available(settings: tuple[ablations.Setting, ...], torch: TorchInfo) -> list[Setting]:
    return [(setting.key, setting.value) for setting in settings if setting.exists_in(torch.release)]


def _of_ablation(entry: ablations.Ablation, torch: TorchInfo) -> list[Setting]:
    available = _available(entry.settings, torch)
    if not available and not entry.switches:
        missing = ", ".join(setting.key for setting in entry.settings)
        raise UsageError(f"torch {torch.version} cannot do the ablation {entry.name}: it has no {missing}")
    for key, _ in available:
        if key not in torch.keys:
            raise UsageError(f"torch {torch.version} has no {key}, which the ablation {entry.name} needs")
    return available


def _full_key(key: str, torch: TorchInfo) -> str:
    """The full key for a short or full one."""
    for candidate in (key, *(f"{module}.{key}" for module in CONFIG_MODULES)):
        if candidate in torch.keys:
            return candidate
    near = _nearest(key, torch.keys)
    hint = f"Did you mean {' or '.join(near)}?" if near else "Keys are those of torch._inductor.config."
    raise UsageError(f"torch {torch.version} has no setting {key}", hint)


def _nearest(key: str, keys: frozenset[str]) -> list[str]:
    """Up to three similar keys, Inductor's own without their prefix."""
    short = {name.removeprefix(ablations.INDUCTOR): name for name in sorted(keys)}
    wanted = key.removeprefix(ablations.INDUCTOR)
    return get_close_matches(wanted, short, n=3, cutoff=0.6)
