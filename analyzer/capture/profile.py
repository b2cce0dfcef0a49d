"""Device profiles: what torch, Inductor and triton want to know of a GPU, as data, each figure with its source."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analyzer.artifacts import versioned_json
from analyzer.errors import UsageError

FOLDER = Path(__file__).resolve().parent / "profiles"
SCHEMA_VERSION = 1
DEFAULT = "a100"
_LARGEST = 1 << 50

FIGURES = (
    "compute_capability",
    "name",
    "multiprocessors",
    "memory_bytes",
    "memory_bandwidth_gbps",
    "memory_bus_bits",
    "l2_bytes",
    "sm_clock_khz",
    "registers_per_multiprocessor",
    "threads_per_multiprocessor",
    "threads_per_block",
    "warp_size",
    "shared_memory_per_block",
    "shared_memory_per_block_optin",
    "shared_memory_per_multiprocessor",
)
"""All of them are needed: numbers, but for the device's name and the pair that is its compute capability."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A device. `figures`: see FIGURES; `sources`: for each figure, where it is from."""

    name: str
    figures: Mapping[str, Any]
    sources: Mapping[str, str] = field(default_factory=dict)


def known() -> tuple[str, ...]:
    """The devices that come with the tool."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.json")))


def find(target: str, file: Path | None = None) -> Profile:
    """The device of a target, `cuda` or `cuda:NAME`, or the one that a file describes.

    Raises UsageError for another target, a device that nobody knows, and a file that is no profile.
    """
    kind, colon, name = target.partition(":")
    if kind != "cuda" or (colon and not name):
        raise UsageError(f"no such target: {target}", f"Targets are cuda and cuda:DEVICE, with {', '.join(known())}.")
    if file is not None:
        if name:
            raise UsageError(f"two devices: {name}, and the one in {file}", "Say --target cuda --profile FILE.")
        return read(file)
    name = name or DEFAULT
    if name not in known():
        raise UsageError(f"no profile of a device {name!r}", f"Choose {', '.join(known())}, or give --profile FILE.")
    return read(FOLDER / f"{name}.json")


def read(file: Path) -> Profile:
    """A profile file. UsageError, or ArtifactError with a position, when it is none."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the profile {file}: {error}") from error
    document = versioned_json.document(text, str(file), SCHEMA_VERSION, "a device profile")
    entries = versioned_json.mapping(document.get("figures"))
    sources = versioned_json.text_map(document.get("sources"))
    figures, origins = {}, {}
    for key in FIGURES:
        entry = versioned_json.mapping(entries.get(key))
        figures[key] = _checked(file, key, entry.get("value"))
        source = versioned_json.text(entry.get("source"))
        if not source:
            raise UsageError(f"{file}: the figure {key} names no source", _EXAMPLE)
        origins[key] = sources.get(source, source)
    return Profile(versioned_json.text(document.get("name")) or file.stem, figures, origins)


_EXAMPLE = f"Start from a copy of {FOLDER / (DEFAULT + '.json')}."


def _checked(file: Path, key: str, value: Any) -> Any:
    if key == "name":
        good = isinstance(value, str) and bool(value)
    elif key == "compute_capability":
        good = (
            isinstance(value, list) and len(value) == 2 and all(type(part) is int and 0 <= part < 100 for part in value)
        )
    else:
        good = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < _LARGEST
    if not good:
        raise UsageError(f"{file}: the figure {key} is {json.dumps(value)[:60]}", _EXAMPLE)
    return value
