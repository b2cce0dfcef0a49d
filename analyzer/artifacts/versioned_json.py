"""Reading our own JSON documents: schema version checked, every value typed, bad input answered with its position."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from analyzer.errors import ArtifactError
from analyzer.model import Location

Json = Mapping[str, Any]
_EMPTY: Json = {}


def document(text: str, source: str, schema_version: int, what: str) -> Json:
    """The document as a mapping. ArtifactError for malformed JSON, no object, or a schema that we do not know."""
    found = _decoded(text, source, what)
    start = Location(source, 1)
    if not isinstance(found, dict):
        raise ArtifactError(start, f"expected a JSON object ({what}), found {type(found).__name__}")
    version = found.get("schema_version")
    if isinstance(version, int) and version > schema_version:
        message = f"{what} of schema version {version}; this release reads up to {schema_version}"
        raise ArtifactError(start, message, hint="Update inductor-audit.")
    if version != schema_version:
        raise ArtifactError(start, f"expected schema_version {schema_version} ({what}), found {version!r}")
    return found


def _decoded(text: str, source: str, what: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = (text.splitlines() or [""])[min(error.lineno, text.count("\n") + 1) - 1 :][:1]
        message = f"expected {what} in JSON: {error.msg.removesuffix(' at')}"
        excerpt, column = _window(line[0] if line else "", error.colno)
        raise _PlacedError(Location(source, error.lineno, error.colno), message, excerpt, column) from None
    except (RecursionError, ValueError) as error:
        raise ArtifactError(Location(source, 1), f"{what} is nested too deeply or holds a number too long") from error


class _PlacedError(ArtifactError):
    """The caret stands under the shown part of a line that may be a megabyte long."""

    def __init__(self, location: Location, message: str, excerpt: str, column: int) -> None:
        super().__init__(location, message, excerpt)
        self.column = column

    def __str__(self) -> str:
        head = f"{self.location}: {self.message}"
        return f"{head}\n    {self.excerpt}\n    {' ' * (self.column - 1)}^" if self.excerpt else head


def _window(line: str, column: int, width: int = 60) -> tuple[str, int]:
    """The part of a line around a column, and the column within it."""
    start = max(0, column - 1 - width)
    return line[start : column + width], column - start


# ------------------------------------------------------------------------------------------- values, typed or absent


def mapping(value: Any) -> Json:
    """A JSON object, else empty."""
    return value if isinstance(value, dict) else _EMPTY


def mappings(value: Any) -> tuple[Json, ...]:
    """The objects of a list."""
    return tuple(item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def text(value: Any) -> str | None:
    """A string, else None."""
    return value if isinstance(value, str) else None


def number(value: Any) -> int | None:
    """An int, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def flag(value: Any) -> bool | None:
    """True or False, else None."""
    return value if isinstance(value, bool) else None


def texts(value: Any) -> tuple[str, ...]:
    """The strings of a list."""
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def text_map(value: Any) -> dict[str, str]:
    """The entries of an object whose values are strings."""
    return {key: item for key, item in mapping(value).items() if isinstance(item, str)}


def number_map(value: Any) -> dict[str, int]:
    """The entries of an object whose values are ints."""
    return {key: item for key, item in mapping(value).items() if number(item) is not None}
