"""A compiled graph that can be called again on the inputs of its first call."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

_ROUND_S = 0.05
_SETTLING = 2
"""Calls at the start of a round that are not measured: caches and threads were another process's until then."""
_WARM_UP_S = 0.3
_FEWEST, _MOST = 3, 1000


class RecordedGraph:
    """`calls`: how often the script called it. Inputs are cloned before the first call, which may overwrite them.

    `user_outputs`: how many outputs of a forward graph are results; all for None.
    """

    def __init__(self, name: str, user_outputs: int | None) -> None:
        self.name = name
        self.user_outputs = user_outputs
        self.calls = 0
        self.number = _FEWEST
        self.pristine: list[Any] = []
        self._run: Callable[[list[Any]], Any] | None = None
        self._inputs: list[Any] = []
        self._overwritten: list[int] = []

    def on_call(self, run: Callable[[list[Any]], Any], inputs: Sequence[Any]) -> None:
        """Take note of a call by the script, before it happens."""
        if self._run is None:
            self.pristine = [clone(value) for value in inputs]
            self._run = run
        self.calls += 1

    def outputs(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """One call on copies of these inputs: what a user sees of it.

        That is the inputs that it overwrites (not of a backward graph, which may use up what its forward saved), and
        what it returns, without what a forward graph saves for its backward.
        """
        assert self._run is not None
        copies = [clone(value) for value in inputs]
        found = self._run(list(copies))
        pairs = zip(copies, inputs, strict=True)
        written = [] if "backward" in self.name else [now for now, then in pairs if not same(now, then)]
        returned = list(found) if isinstance(found, (list, tuple)) else [found]
        return (*written, *returned[: self.user_outputs])

    def warm_up(self) -> None:
        """Finds which inputs a call overwrites, and how many calls make a round."""
        assert self._run is not None
        self._inputs = [clone(value) for value in self.pristine]
        self._run(list(self._inputs))
        pairs = enumerate(zip(self._inputs, self.pristine, strict=True))
        self._overwritten = [index for index, (now, then) in pairs if not same(now, then)]
        began, once = time.perf_counter(), [self._seconds()]
        while time.perf_counter() - began < _WARM_UP_S:
            once.append(self._seconds())
        self.number = max(_FEWEST, min(_MOST, int(_ROUND_S / max(median(once), 1e-7))))

    def round(self) -> float:
        """The median of some calls, in seconds per call. Inputs get other memory, whose place can make a difference."""
        self._inputs = [clone(value) for value in self.pristine]
        return median([self._seconds() for _ in range(_SETTLING + self.number)][_SETTLING:])

    def _seconds(self) -> float:
        """One call. What it overwrites is put back first, outside the measured time."""
        import torch

        assert self._run is not None
        for index in self._overwritten:
            self._inputs[index].copy_(self.pristine[index])
        inputs = list(self._inputs)
        wait = torch.cuda.synchronize if torch.cuda.is_initialized() else _nothing
        wait()
        began = time.perf_counter()
        kept = self._run(inputs)
        wait()
        elapsed = time.perf_counter() - began
        del kept
        return elapsed


def _nothing() -> None:
    return


def clone(value: Any) -> Any:
    """A copy with the same strides, gaps and overlaps; anything but a tensor is itself."""
    import torch

    if not isinstance(value, torch.Tensor):
        return value
    value = value.detach()
    if value.layout != torch.strided or value.numel() == 0:
        return value.clone()
    reach = 1 + sum((size - 1) * stride for size, stride in zip(value.size(), value.stride(), strict=True))
    memory = torch.as_strided(value, (reach,), (1,)).clone()
    return torch.as_strided(memory, value.size(), value.stride(), 0)


def same(one: Any, other: Any) -> bool:
    """Whether two inputs hold the same values; NaN is the same as NaN."""
    import torch

    if not isinstance(one, torch.Tensor):
        return True
    if one.shape != other.shape:
        return False
    equal = one == other
    return bool((equal | ((one != one) & (other != other))).all())  # noqa: PLR0124 - true for NaN alone
