"""The environment of the captured command: debug output on, every cache off or private, the hook in reach."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

INSIDE = Path(__file__).resolve().parent / "inside"
REQUEST_VARIABLE = "INDUCTOR_AUDIT_REQUEST"
RELEVANT = ("TORCH", "TRITON", "INDUCTOR", "OMP", "MKL", "ATEN", "CUDA", "AOT", "PYTORCH", "CXX")
_REMOTE_CACHES = (
    "TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE",
    "TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE",
    "TORCHINDUCTOR_AUTOTUNE_REMOTE_CACHE",
    "TORCHINDUCTOR_BUNDLED_AUTOTUNE_REMOTE_CACHE",
)

WITHOUT_DEVICE = {"CUDA_VISIBLE_DEVICES": "", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
"""For a device that is assumed: a real one stays out of it, and so do compile workers, since nothing is compiled."""


def child_environment(base: Mapping[str, str], run: Path, cache: Path, request: Path) -> dict[str, str]:
    """The command's environment.

    Two switches keep a compile cold in all versions from 2.5 on: graph caches off, and a cache folder of this run's
    own for compiled kernels. TORCHINDUCTOR_FORCE_DISABLE_CACHES would do the same, but it compiles the C++ compiler's
    probes again and again, shows among the settings and can change kernel names.
    """
    environment = {key: value for key, value in base.items() if key not in _REMOTE_CACHES}
    if environment.get("INDUCTOR_PROVENANCE") == "0":
        del environment["INDUCTOR_PROVENANCE"]  # TORCH_COMPILE_DEBUG then switches provenance on
    environment |= {
        "TORCH_COMPILE_DEBUG": "1",
        "TORCH_COMPILE_DEBUG_DIR": str(run),
        "TORCHINDUCTOR_FX_GRAPH_CACHE": "0",
        "TORCHINDUCTOR_AUTOGRAD_CACHE": "0",
        "ENABLE_AOT_AUTOGRAD_CACHE": "0",
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "TRITON_CACHE_DIR": str(cache / "triton"),
        REQUEST_VARIABLE: str(request),
        "PYTHONPATH": _prepended(str(INSIDE), base.get("PYTHONPATH")),
    }
    return environment


def _prepended(first: str, rest: str | None) -> str:
    return first if not rest else first + os.pathsep + rest


def relevant(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that can change what Inductor does."""
    found = {key: value for key, value in sorted(environment.items()) if key.startswith(RELEVANT)}
    return {key: value for key, value in found.items() if key != REQUEST_VARIABLE}


def probe_cache(environment: Mapping[str, str]) -> Path:
    """Where answers of the C++ compiler about vector instruction sets are kept between runs."""
    home = environment.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "inductor-audit" / "vector-isa.json"
