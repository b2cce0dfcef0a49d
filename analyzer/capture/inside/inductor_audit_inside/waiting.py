"""An import hook: call a function of this package once a module of torch has been imported, without importing it.

Loaded at the start of every Python process of a command, so it leaves the standard library's slower modules (typing,
contextlib, json) to the processes that do import torch.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


class _Waiting:
    """A meta path finder for the modules of the plan alone; every other import costs one dictionary look-up."""

    def __init__(self, plan: dict[str, str]) -> None:
        self.plan = plan

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self.plan:
            return None
        action = self.plan.pop(fullname)
        spec = _found_by_others(self, fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Announcing(spec.loader, action)  # type: ignore[assignment]
        return spec


class _Announcing:
    """The real loader, followed by our action; the module keeps no trace of it."""

    def __init__(self, real: Any, action: str) -> None:
        self.real = real
        self.action = action

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.real.create_module(spec)  # type: ignore[no-any-return]

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self.real
        if module.__spec__ is not None:
            module.__spec__.loader = self.real
        self.real.exec_module(module)
        perform(self.action, module)


def perform(actions: str, module: ModuleType) -> None:
    """Run each `module of this package:function` on an imported module of torch."""
    import importlib

    from inductor_audit_inside.notes import guarded

    for action in actions.split():
        with guarded(f"hook {module.__name__}"):
            where, function = action.split(":")
            getattr(importlib.import_module(f"inductor_audit_inside.{where}"), function)(module)


def _found_by_others(
    me: _Waiting, fullname: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        if finder is me or find is None:
            continue
        spec: ModuleSpec | None = find(fullname, path, target)
        if spec is not None:
            return spec
    return None


def after_import(plan: dict[str, str]) -> None:
    """Watch for the modules of `plan` (module name → action); those already imported are served at once.

    The finder comes first: serving one module may import another.
    """
    waiting = _Waiting(dict(plan))
    sys.meta_path.insert(0, waiting)
    for name in plan:
        if name in waiting.plan and name in sys.modules:
            perform(waiting.plan.pop(name), sys.modules[name])
