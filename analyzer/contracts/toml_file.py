"""A contract file: TOML → contracts, every mistake answered at its line and column."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

from analyzer.contracts.places import Places
from analyzer.contracts.records import Clause, Contract
from analyzer.contracts.values import NAMES, Reader
from analyzer.errors import ArtifactError
from analyzer.model import Location

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MAX_CHARACTERS = 1_000_000
_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_EXAMPLE = 'A contract is [[contract]], name = "...", and promises such as fused = ["exp", "sum_1"].'


def parse(text: str, source: str) -> tuple[Contract, ...]:
    """The contracts of a file, in its order. ArtifactError, with the place, for the first thing that is wrong."""
    places = Places(text, source)
    if len(text) > MAX_CHARACTERS:
        raise ArtifactError(Location(source, 1), f"expected at most {MAX_CHARACTERS:,} characters of contracts")
    document = _decoded(text, source, places)
    for key in document:
        if key != "contract":
            raise places.error(places.key(None, key), f"expected [[contract]], found {key!r}", _EXAMPLE)
    entries = document.get("contract")
    if not isinstance(entries, list) or not entries:
        raise places.error(Location(source, 1), "expected at least one [[contract]]", _EXAMPLE)
    return tuple(_contract(entry, number, places) for number, entry in enumerate(entries))


def _decoded(text: str, source: str, places: Places) -> Mapping[str, Any]:
    try:
        document: Mapping[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _POSITION.search(str(error))
        line, column = (int(found[1]), int(found[2])) if found and found[1] else (places.last_line, 1)
        message = _POSITION.sub("", str(error))
        raise places.error(Location(source, line, column), f"expected TOML: {message}") from None
    except RecursionError:
        raise ArtifactError(Location(source, 1), "expected TOML: it is nested too deeply") from None
    except ValueError as error:
        raise ArtifactError(Location(source, 1), f"expected TOML: {error}") from None
    return document


def _contract(entry: object, number: int, places: Places) -> Contract:
    start = places.header(number)
    if not isinstance(entry, dict):
        raise places.error(start, "expected a table: [[contract]]", _EXAMPLE)
    reader = Reader(places, number)
    name = reader.text(entry, "name")
    clauses = tuple(reader.clause(key, value) for key, value in entry.items() if key not in NAMES)
    if not name:
        raise places.error(start, 'expected a name in this contract: name = "..."', _EXAMPLE)
    if not clauses:
        raise places.error(start, f"expected a promise in the contract {name!r}", _EXAMPLE)
    return Contract(name, start, clauses, reader.text(entry, "graph") or "*")


def clauses_of(promises: Mapping[str, object]) -> tuple[Clause, ...]:
    """Promises that a program makes, `{"fused": ["exp", "sum_1"]}`; ArtifactError for what is none."""
    reader = Reader(Places("", "<promise>"), 0)
    return tuple(reader.clause(key, value) for key, value in promises.items())
