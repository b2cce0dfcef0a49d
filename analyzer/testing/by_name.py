"""Hands a function and its arguments to another process: the function by its name, tensors by their description.

Nothing is pickled, so only what can be written down travels: module-level functions, literals, and tensors without
their values.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from analyzer.errors import UsageError

Json = dict[str, Any]
CALLER = Path(__file__).parents[1] / "capture" / "inside" / "call_function.py"
"""The script that reads a request in the other process."""

_LITERALS = (type(None), bool, int, float, complex, str, bytes)
_MAKE_IT = "Write a function at the top of a module that makes it, and pass that."


def request_of(
    function: Callable[..., object],
    arguments: Sequence[object] = (),
    keywords: Mapping[str, object] | None = None,
    compile_with: Mapping[str, object] | None = None,
    backward: bool = False,
) -> Json:
    """The call as a JSON document; `compile_with` are the arguments of torch.compile, None to call it as it is.

    UsageError for a function that cannot be found by name, and for an argument that cannot be written down.
    """
    module, qualname, file = _name_of(function)
    return {
        "module": module,
        "qualname": qualname,
        "file": file,
        "path": [str(Path(entry).absolute()) for entry in sys.path],
        "arguments": [described(value, f"argument {number}") for number, value in enumerate(arguments, 1)],
        "keywords": {name: described(value, name) for name, value in (keywords or {}).items()},
        "compile": None
        if compile_with is None
        else {name: described(value, name) for name, value in compile_with.items()},
        "backward": backward,
    }


def _name_of(function: Callable[..., object]) -> tuple[str, str, str]:
    """Module, name and file, checked: the name must lead back to this very function."""
    plain = inspect.unwrap(function)
    module, qualname = getattr(plain, "__module__", None), getattr(plain, "__qualname__", None)
    if module is None or qualname is None or inspect.isclass(plain):
        raise UsageError(f"a {type(function).__name__} cannot be found by name in another process", _MAKE_IT)
    if "<" in qualname:
        hint = "Move it to the top of its module, under a name of its own."
        raise UsageError(f"{qualname} cannot be found by name in another process", hint)
    found: object = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    if found is not function and (not callable(found) or inspect.unwrap(found) is not plain):
        raise UsageError(f"{module}.{qualname} is another object than the one that was passed", _MAKE_IT)
    file = inspect.getsourcefile(plain)
    if file is None:
        raise UsageError(f"{module}.{qualname} has no source file", _MAKE_IT)
    return module, qualname, str(Path(file).absolute())


def described(value: object, name: str) -> list[Any]:
    """[kind, content] of an argument. UsageError for what cannot be written down."""
    if isinstance(value, _LITERALS):
        return ["literal", repr(value)]
    if type(value) in (list, tuple):
        assert isinstance(value, (list, tuple))
        return [type(value).__name__, [described(item, name) for item in value]]
    if type(value) is dict and all(isinstance(key, _LITERALS) for key in value):
        return ["dict", [[repr(key), described(item, name)] for key, item in value.items()]]
    tensor = _tensor(value)
    if tensor is None:
        raise UsageError(f"{name} is a {type(value).__name__}, which cannot be handed to another process", _MAKE_IT)
    return ["tensor", tensor]


def _tensor(value: Any) -> Json | None:
    """A tensor's layout; torch is not imported for this, as whoever made a tensor has done it."""
    if not type(value).__module__.startswith("torch") or str(getattr(value, "layout", "")) != "torch.strided":
        return None
    return {
        "size": [int(extent) for extent in value.shape],
        "stride": [int(step) for step in value.stride()],
        "dtype": str(value.dtype),
        "device": str(value.device),
        "requires_grad": bool(value.requires_grad),
    }
