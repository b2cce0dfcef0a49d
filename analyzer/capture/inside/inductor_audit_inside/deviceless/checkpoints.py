"""Files of tensors: there are no values to write, and what is read goes where the program wants it."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from inductor_audit_inside.deviceless import choices, tensors
from inductor_audit_inside.deviceless.patch import Patch

_FOR_CUDA = "_inductor_audit_for_cuda"
_FIRST = 0
"""Before the deserializers of torch (torch/serialization.py), which begin at 10."""


def skip_saving(torch: Any, patch: Patch) -> None:
    """A file of the program's keeps what an earlier run has written."""

    def make(original: Any) -> Any:
        def save(obj: Any, *args: Any, **kwargs: Any) -> None:
            if not _holds_fakes(obj):
                original(obj, *args, **kwargs)
                return
            choices.assume("placeholder", "torch.save", "nothing was written", "no value was computed")

        return save

    patch.around(torch.serialization, "save", make)
    torch.save = torch.serialization.save


def _holds_fakes(obj: Any) -> bool:
    """As far as one can see without pickling it: containers, modules and their state."""
    import torch
    from torch.utils import _pytree

    for leaf in _pytree.tree_leaves(obj):
        parts = (*leaf.parameters(), *leaf.buffers()) if isinstance(leaf, torch.nn.Module) else (leaf,)
        if any(map(tensors.is_fake, parts)):
            return True
    return False


def load_as_fakes(torch: ModuleType, patch: Patch) -> None:
    """What was saved on a device, or is mapped to one, is read on the CPU and moved."""
    torch.serialization.register_package(_FIRST, lambda obj: None, _left_on_cpu)

    def make(original: Any) -> Any:
        def _rebuild_tensor(storage: Any, *args: Any, **kwargs: Any) -> Any:
            tensor = original(storage, *args, **kwargs)
            return tensor.to("cuda") if hasattr(storage._untyped_storage, _FOR_CUDA) else tensor

        return _rebuild_tensor

    patch.around(torch._utils, "_rebuild_tensor", make)


def _left_on_cpu(storage: Any, location: Any) -> Any:
    """None for other locations: then torch's own deserializers are asked."""
    if not str(location).startswith("cuda"):
        return None
    setattr(storage, _FOR_CUDA, True)
    return storage
