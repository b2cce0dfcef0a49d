"""Choices that Inductor makes by timing kernels on the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from inductor_audit_inside.deviceless import choices
from inductor_audit_inside.deviceless.patch import Patch

_FIRST_TEMPLATE = "nothing was timed: the first Triton template, or the first kernel where there is none"


def choose_kernels(select_algorithm: ModuleType, patch: Patch) -> None:
    """max-autotune: no kernel is compiled or run, and the first Triton template wins."""
    cache = select_algorithm.AlgorithmSelectorCache
    template = select_algorithm.TritonTemplateCaller

    def assumed(candidates: Sequence[Any]) -> dict[Any, float]:
        order = sorted(candidates, key=lambda candidate: not isinstance(candidate, template))
        if order:
            subject = f"{len(order)} kernels for {_operation(order[0])}"
            choices.assume("autotune", subject, str(getattr(order[0], "name", order[0])), _FIRST_TEMPLATE)
        return {candidate: float(rank + 1) for rank, candidate in enumerate(order)}

    def make_benchmark_fn(cls: Any, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        return lambda candidates, *more, **others: assumed(candidates)

    cache.make_benchmark_fn = classmethod(patch.counting(make_benchmark_fn, make_benchmark_fn))
    patch.replace(cache, "make_precompile_fn", lambda self, *args, **kwargs: lambda *more, **others: {})
    cache.prescreen_choices = staticmethod(lambda *args, **kwargs: [])
    cache.log_results = staticmethod(lambda *args, **kwargs: None)  # it would print these ranks as milliseconds


def _operation(candidate: Any) -> str:
    """What the kernels compute, with its shape."""
    layout = getattr(candidate, "layout", None)
    kind = str(getattr(candidate, "name", "?")).removeprefix("triton_").rstrip("0123456789").rstrip("_")
    return f"{kind} {tuple(map(str, getattr(layout, 'size', ())))}".replace("'", "")


def choose_padding(pad_mm: Any, patch: Patch) -> None:
    """Equal times for both: then Inductor does not pad. What it decides by rule stays its own decision."""
    name = "_should_pad" if hasattr(pad_mm, "_should_pad") else "should_pad_bench"

    def not_timed(*args: Any, **kwargs: Any) -> float:
        return 1.0

    def make(original: Any) -> Any:
        def should_pad(match: Any, mat1: Any, mat2: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
            before = patch.hits
            try:
                answer = original(match, mat1, mat2, op, *args, **kwargs)
            except (RuntimeError, TypeError, ValueError, NotImplementedError):
                answer = False  # it failed on the way to its timer, so it was going to time
                patch.hits += 1
            if patch.hits > before and not answer:
                subject = f"{op} of {tuple(mat1.shape)} and {tuple(mat2.shape)}"
                choices.assume("pad_mm", subject, "not padded", "nothing was timed")
            return answer

        return should_pad

    pad_mm.get_do_bench = lambda: patch.counting(not_timed, not_timed)
    setattr(pad_mm, name, make(getattr(pad_mm, name)))
