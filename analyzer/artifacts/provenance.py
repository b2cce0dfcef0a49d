"""`inductor_provenance_tracking_node_mappings.json` and its side records: which FX nodes a kernel came from.

torch/_inductor/debug.py (`create_node_mapping_kernel_to_post_grad`, `dump_inductor_provenance_info`) writes the four
maps; the trace log has the same with `version`, and `..kernel_stack_traces`. Torch 2.7 also wrote
`inductor_triton_kernel_to_post_grad_nodes.json`, one plain map.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from analyzer.model import Artifact, ArtifactState, Location, Problem, Provenance, artifact_of

_FIELDS = {
    "preToPost": "pre_to_post",
    "postToPre": "post_to_pre",
    "cppCodeToPost": "kernel_to_post",
    "postToCppCode": "post_to_kernel",
}
_MOST_REPEATED = 20
_COLON = re.compile(r"\s*:")
_DEEP = "expected a provenance record, found JSON that is nested too deeply"


def parse(text: str, source: str) -> Provenance:
    """Read any of the records; `source` (a file name, or the record's name in a log) helps to tell plain maps apart.

    Text that is no JSON gives empty maps and one Problem with line and column; an entry of a wrong type is left out
    with a Problem of its own.
    """
    if "post_to_pre_grad_nodes" in source:
        cause = "the nested node sources of torch 2.6 are not read"
        return Provenance(Artifact(source, ArtifactState.UNSUPPORTED, len(text.splitlines()), cause=cause))
    return _Reader(text, source).provenance()


def with_stacks(mappings: Provenance, stacks: Provenance) -> Provenance:
    """The mappings of a graph completed by its record of kernel stack traces."""
    return replace(mappings, kernel_stacks=stacks.kernel_stacks)


def split_handle(key: str) -> tuple[str, int | None]:
    """`triton_poi_fused_0:3` → its name and debug handle; no handle before torch 2.9. `at::_ops::sort` has none."""
    name, _, handle = key.rpartition(":")
    if name and not name.endswith(":") and handle.isascii() and handle.isdigit() and len(handle) < 10:
        return name, int(handle)
    return key, None


class _Reader:
    def __init__(self, text: str, source: str) -> None:
        self._text, self._source = text, source
        self._problems: list[Problem] = []
        self._repeated: list[str] = []
        self._missed = False
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def provenance(self) -> Provenance:
        record = self._load() if self._text.strip() else {}
        if record is not None and not isinstance(record, dict):
            self._problem(0, "expected a JSON object of provenance maps")
        maps, version = self._maps(record if isinstance(record, dict) else {})
        for key in list(dict.fromkeys(self._repeated))[:_MOST_REPEATED]:
            self._problem(self._second(key), f"expected each key once, found {key!r} again: the last one counts")
        artifact = artifact_of(self._source, self._text, tuple(self._problems))
        return Provenance(
            artifact,
            pre_to_post=maps.get("pre_to_post", {}),
            post_to_pre=maps.get("post_to_pre", {}),
            kernel_to_post=maps.get("kernel_to_post", {}),
            post_to_kernel=maps.get("post_to_kernel", {}),
            kernel_stacks=maps.get("kernel_stacks", {}),
            version=version,
        )

    def _load(self) -> object:
        try:
            return json.loads(self._text, object_pairs_hook=self._object)
        except json.JSONDecodeError as error:
            self._problem(error.pos, f"expected JSON: {error.msg.removesuffix(' at')}")
        except RecursionError:
            self._problem(0, _DEEP)
        except ValueError as error:
            self._problem(0, f"expected JSON: {error}")
        return None

    def _object(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) < len(pairs):
            self._repeated += [key for key, times in Counter(key for key, _ in pairs).items() if times > 1]
        return found

    def _maps(self, record: Mapping[str, object]) -> tuple[dict[str, Mapping[str, tuple[str, ...]]], str | None]:
        version = record.get("version")
        plain = {key: value for key, value in record.items() if key != "version"}
        if not plain.keys() & _FIELDS.keys():
            return {self._kind(plain): self._map(plain, 0)}, None if version is None else str(version)
        maps: dict[str, Mapping[str, tuple[str, ...]]] = {}
        for key, value in plain.items():
            start = max(self._position(key, 0), 0)
            if key not in _FIELDS:
                self._problem(start, f"expected {', '.join(_FIELDS)} or version, found {key!r}")
            elif not isinstance(value, dict):
                self._problem(start, f"expected an object for {key!r}, found {_kind_of(value)}")
            else:
                maps[_FIELDS[key]] = self._map(value, start)
        return maps, None if version is None else str(version)

    def _kind(self, plain: Mapping[str, object]) -> str:
        """Which field a record without the four names fills: stack texts quote files, node names do not."""
        if "stack_trace" in self._source:
            return "kernel_stacks"
        texts = (item for value in plain.values() if isinstance(value, list) for item in value)
        return (
            "kernel_stacks" if any(isinstance(text, str) and 'File "' in text for text in texts) else "kernel_to_post"
        )

    def _map(self, entries: Mapping[str, object], start: int) -> dict[str, tuple[str, ...]]:
        found = {}
        for key, value in entries.items():
            if isinstance(value, list) and all(isinstance(item, str) for item in value):
                found[key] = tuple(cast("list[str]", value))
            else:
                start = self._position(key, start)
                wrong = _kind_of(value) if not isinstance(value, list) else "a list with other items"
                self._problem(start, f"expected a list of names for {key!r}, found {wrong}")
        return found

    def _position(self, key: str, start: int) -> int:
        """Offset of a key in the text, from `start` on; `start` itself where it is written with other escapes.

        Entries come in the order of the text, so going on from the last one keeps the search linear; a miss would
        scan to the end each time, hence ends it.
        """
        found = -1 if self._missed else self._find(key, start)
        self._missed = found < 0
        return start if self._missed else found

    def _find(self, key: str, start: int) -> int:
        """Offset of the next `"key":`, -1 without one."""
        quoted = json.dumps(key)
        found = self._text.find(quoted, start)
        while found >= 0 and _COLON.match(self._text, found + len(quoted)) is None:
            found = self._text.find(quoted, found + 1)
        return found

    def _second(self, key: str) -> int:
        first = self._find(key, 0)
        return max(self._find(key, first + 1), first, 0)

    def _problem(self, offset: int, message: str) -> None:
        line = bisect_right(self._line_starts, offset)
        start = self._line_starts[line - 1]
        end = self._text.find("\n", offset)
        excerpt = self._text[start : end if end >= 0 else None][:160]
        self._problems.append(Problem(Location(self._source, line, offset - start + 1), message, excerpt))


def _kind_of(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
