"""What a doctor says: causes, and which of them were found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from analyzer.model import StrEnum

Subject = TypeVar("Subject")


class Level(StrEnum):
    """PROBLEM: the dump is missing or wrong because of it. NOTE: the dump is right, but may surprise."""

    PROBLEM = "problem"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Cause(Generic[Subject]):
    """Something that can be wrong: how it is found in a subject, and the one thing to do about it.

    `find` yields a sentence for every time that it is there. `rules_out`: when it is found, what comes after it in the
    registry would only be its consequence, and is not looked for.
    """

    name: str
    find: Callable[[Subject], Iterator[str]]
    remedy: str
    level: Level = Level.PROBLEM
    rules_out: bool = False


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A cause that was found; `told` are the sentences that say where and how."""

    cause: str
    told: tuple[str, ...]
    remedy: str
    level: Level


@dataclass(frozen=True, slots=True)
class Report:
    """The diagnoses in order of importance: the first one's remedy is the thing to do. `facts` are what is in order."""

    subject: str
    diagnoses: tuple[Diagnosis, ...]
    facts: tuple[str, ...] = ()

    @property
    def problems(self) -> tuple[Diagnosis, ...]:
        """The diagnoses that explain a missing or wrong dump."""
        return tuple(diagnosis for diagnosis in self.diagnoses if diagnosis.level == Level.PROBLEM)


def diagnose(causes: Iterable[Cause[Subject]], subject: Subject) -> Iterator[Diagnosis]:
    """Every cause that is found, problems before notes, each group in the order of its registry."""
    notes = []
    for cause in causes:
        told = tuple(dict.fromkeys(cause.find(subject)))
        if not told:
            continue
        diagnosis = Diagnosis(cause.name, told, cause.remedy, cause.level)
        if cause.level == Level.NOTE:
            notes.append(diagnosis)
        else:
            yield diagnosis
        if cause.rules_out:
            break
    yield from notes
