"""One thing that is replaced in torch: why, for which versions, whether that worked, and how often it was used."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Release = tuple[int, int]


@dataclass
class Patch:
    """An entry of the table.

    `module`: installed when this module of torch or triton has been imported. `where`: `module:function` of this
    package, called with the imported module and this entry. `since`, `before`: the torch versions it is for.
    `cpu_wheel`: only for a torch that was built without CUDA. `codegen_only`: also for
    captures on a device that is there.
    """

    name: str
    module: str
    where: str
    reason: str
    since: Release = (2, 7)
    before: Release | None = None
    cpu_wheel: bool = False
    codegen_only: bool = False
    installed: bool = False
    error: str | None = None
    hits: int = 0

    def is_for(self, release: Release) -> bool:
        """Whether a version of torch needs it."""
        return self.since <= release and (self.before is None or release < self.before)

    def replace(self, owner: Any, name: str, function: Callable[..., Any]) -> None:
        """Put a function in the place of `owner.name`, which may be missing, and count its calls."""
        setattr(owner, name, self.counting(function, getattr(owner, name, function)))

    def around(self, owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        """Replace `owner.name` by `make(original)`. AttributeError where this torch version has no such function."""
        self.replace(owner, name, make(getattr(owner, name)))

    def counting(self, function: Callable[..., Any], like: Callable[..., Any]) -> Callable[..., Any]:
        """The function, named like another, with its calls counted."""

        @functools.wraps(like, updated=())
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.hits += 1
            return function(*args, **kwargs)

        return counted

    def fact(self) -> dict[str, Any]:
        """What `deviceless.json` says of it."""
        told = ("name", "reason", "installed", "error", "hits")
        return {key: getattr(self, key) for key in told}
