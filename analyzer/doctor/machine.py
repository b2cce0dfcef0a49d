"""What can keep this machine from making a dump: torch, compilers, variables, folders."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from analyzer.doctor.limits import too_long
from analyzer.doctor.records import Cause, Level
from analyzer.doctor.variables import is_unknown, nearest
from analyzer.doctor.wrong import NEWEST, OLDEST
from analyzer.version import at_least

_PROBE = """
import json, os, sysconfig
found = {"headers": os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h"))}
try:
    import torch
    found["torch"] = torch.__version__
    found["cuda"] = torch.cuda.is_available()
except Exception as error:
    found["error"] = f"{type(error).__name__}: {error}"
try:
    import triton
    found["triton"] = triton.__version__
except Exception:
    pass
print("\\n" + json.dumps(found))
"""
_PROBE_TIMEOUT_S = 120
_COMPILERS = ("g++", "clang++", "c++")
_LITTLE_SPACE = 200 << 20


@dataclass(frozen=True, slots=True)
class Machine:
    """The environment that a capture would start in. `torch` is None where the interpreter cannot import it."""

    python: str
    variables: Mapping[str, str]
    folder: Path
    torch: str | None = None
    error: str | None = None
    cuda: bool = False
    triton: str | None = None
    headers: bool = True

    @property
    def debug_folder(self) -> Path:
        """Where torch would write."""
        return Path(self.variables.get("TORCH_COMPILE_DEBUG_DIR") or self.folder) / "torch_compile_debug"

    @property
    def compiler(self) -> str | None:
        """The C++ compiler that Inductor would find: $CXX, else the usual names (torch/_inductor/cpp_builder.py)."""
        names = (self.variables["CXX"],) if self.variables.get("CXX") else _COMPILERS
        path = self.variables.get("PATH", os.defpath)
        return next((found for name in names if (found := shutil.which(name, path=path))), None)


def survey(python: str, variables: Mapping[str, str], folder: Path) -> Machine:
    """Ask the interpreter what it has."""
    try:
        done = subprocess.run(
            [python, "-W", "ignore", "-c", _PROBE],
            capture_output=True,
            text=True,
            timeout=_PROBE_TIMEOUT_S,
            check=False,
            env=dict(variables),
        )
        found = json.loads(done.stdout.splitlines()[-1])
    except OSError as error:
        return Machine(python, variables, folder, error=f"cannot run {python}: {error}")
    except subprocess.TimeoutExpired:
        return Machine(python, variables, folder, error=f"{python} did not answer within {_PROBE_TIMEOUT_S} s")
    except (ValueError, IndexError):
        last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        return Machine(python, variables, folder, error=f"{python} failed: {last}")
    known = {key: found.get(key) for key in ("torch", "error", "triton")}
    return Machine(python, variables, folder, cuda=bool(found.get("cuda")), headers=bool(found["headers"]), **known)


def no_torch(it: Machine) -> Iterator[str]:
    """The interpreter has no torch."""
    if it.torch is None:
        yield f"{it.python} cannot import torch: {it.error}"


def torch_too_old(it: Machine) -> Iterator[str]:
    """Before the first version that the hook knows."""
    if it.torch is not None and not at_least(it.torch, OLDEST):
        yield f"torch {it.torch} is older than {OLDEST[0]}.{OLDEST[1]}"


def torch_too_new(it: Machine) -> Iterator[str]:
    """After the last version that the hook knows."""
    if it.torch is not None and at_least(it.torch, (NEWEST[0], NEWEST[1] + 1)):
        yield f"torch {it.torch} is newer than {NEWEST[0]}.{NEWEST[1]}, the newest that is known"


def compile_disabled(it: Machine) -> Iterator[str]:
    """Variables that make torch.compile do nothing."""
    yield from (
        f"{name}=1" for name in ("TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE") if it.variables.get(name) == "1"
    )


def debug_value(it: Machine) -> Iterator[str]:
    """Torch compares with "1" and takes every other value for off."""
    value = it.variables.get("TORCH_COMPILE_DEBUG")
    if value not in (None, "0", "1", ""):
        yield f"TORCH_COMPILE_DEBUG={value}, which torch takes for off: only 1 switches it on"


def errors_suppressed(it: Machine) -> Iterator[str]:
    """A failed compile then looks like one that worked."""
    if it.variables.get("TORCHDYNAMO_SUPPRESS_ERRORS") == "1":
        yield "TORCHDYNAMO_SUPPRESS_ERRORS=1: a graph that fails to compile runs uncompiled, without a word"


def no_compiler(it: Machine) -> Iterator[str]:
    """Inductor needs one for CPU kernels, and Triton for its launcher."""
    if it.compiler is None:
        wanted = it.variables.get("CXX") or ", ".join(_COMPILERS)
        yield f"no C++ compiler on PATH ({wanted})"


def no_headers(it: Machine) -> Iterator[str]:
    """Kernels are bound to Python by its C headers."""
    if it.torch is not None and not it.headers:
        yield f"{it.python} has no Python.h"


def no_triton(it: Machine) -> Iterator[str]:
    """GPU kernels are Triton's."""
    if it.cuda and it.triton is None:
        yield f"{it.python} sees a GPU, but cannot import triton"


def unwritable(it: Machine) -> Iterator[str]:
    """Folders that torch must be able to write to."""
    for what, folder in (("debug folder", it.debug_folder), ("cache folder", _cache(it))):
        there = next((one for one in (folder, *folder.parents) if _exists(one)), None)
        if there is None or not os.access(there, os.W_OK) or not there.is_dir():
            yield f"the {what} {folder} cannot be written"


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def path_too_long(it: Machine) -> Iterator[str]:
    """Names below the debug folder would pass the system's limit."""
    why = too_long(it.debug_folder)
    if why is not None:
        yield f"the debug folder: {why}"


def little_space(it: Machine) -> Iterator[str]:
    """Compilers fail in odd ways on a full disk."""
    for folder in {_nearest(it.debug_folder), _nearest(_cache(it))} - {None}:
        free = shutil.disk_usage(str(folder)).free
        if free < _LITTLE_SPACE:
            yield f"{folder} has {free / 1e6:.0f} MB left"


def _nearest(folder: Path) -> Path | None:
    return next((one for one in (folder, *folder.parents) if _exists(one)), None)


def _cache(it: Machine) -> Path:
    """Inductor's cache folder (torch/_inductor/runtime/cache_dir_utils.py): torchinductor_USER in the temporary one."""
    given = it.variables.get("TORCHINDUCTOR_CACHE_DIR")
    user = it.variables.get("USER") or it.variables.get("LOGNAME") or "user"
    return Path(given) if given else Path(tempfile.gettempdir()) / f"torchinductor_{user}"


def warm_cache(it: Machine) -> Iterator[str]:
    """Graphs that a plain run with TORCH_COMPILE_DEBUG=1 would not compile again."""
    off = it.variables.get("TORCHINDUCTOR_FX_GRAPH_CACHE") == "0"
    if off or it.variables.get("TORCHINDUCTOR_FORCE_DISABLE_CACHES") == "1":
        return
    folder = _cache(it) / "fxgraph"
    if folder.is_dir() and any(folder.iterdir()):
        yield f"{folder} holds compiled graphs: TORCH_COMPILE_DEBUG=1 dumps nothing for a graph that is found there"


def provenance_off(it: Machine) -> Iterator[str]:
    """The record of which op became which kernel."""
    if it.variables.get("INDUCTOR_PROVENANCE") == "0":
        yield "INDUCTOR_PROVENANCE=0"


def unknown_variables(it: Machine) -> Iterator[str]:
    """Misspelt variables, about which torch is silent."""
    for name in sorted(it.variables):
        if is_unknown(name):
            near = nearest(name)
            yield f"torch reads no variable {name}" + (f"; there is {near}" if near else "")


MACHINE = (
    Cause("no torch", no_torch, "choose an interpreter that has torch with --python"),
    Cause("torch too old", torch_too_old, f"install torch {OLDEST[0]}.{OLDEST[1]} or later there"),
    Cause("compilation switched off", compile_disabled, "unset the variable: with it torch.compile does nothing"),
    Cause("debug variable", debug_value, "set TORCH_COMPILE_DEBUG=1"),
    Cause("no C++ compiler", no_compiler, "install g++ or clang++, or set CXX"),
    Cause("no Python headers", no_headers, "install the development package of this Python (python3-dev)"),
    Cause("no Triton", no_triton, "install the triton that belongs to this torch"),
    Cause(
        "folder not writable",
        unwritable,
        "set TORCH_COMPILE_DEBUG_DIR and TORCHINDUCTOR_CACHE_DIR to folders of your own",
    ),
    Cause("path too long", path_too_long, "set TORCH_COMPILE_DEBUG_DIR to a shorter folder"),
    Cause("disk almost full", little_space, "make room"),
    Cause(
        "errors suppressed",
        errors_suppressed,
        "unset TORCHDYNAMO_SUPPRESS_ERRORS while looking for a cause",
        Level.NOTE,
    ),
    Cause("unknown variable", unknown_variables, "correct its name", Level.NOTE),
    Cause("torch too new", torch_too_new, "update inductor-audit", Level.NOTE),
    Cause("warm cache", warm_cache, "use `inductor-audit capture`, or set TORCHINDUCTOR_FX_GRAPH_CACHE=0", Level.NOTE),
    Cause("provenance off", provenance_off, "unset INDUCTOR_PROVENANCE", Level.NOTE),
)
"""In order of importance."""


def in_order(it: Machine) -> Iterator[str]:
    """What a capture can rely on."""
    if it.torch is not None:
        yield f"torch {it.torch} ({it.python})"
    if it.compiler is not None:
        yield f"C++ compiler {it.compiler}"
    if it.cuda:
        yield "a CUDA device" + (f", triton {it.triton}" if it.triton else "")
    yield f"dumps go to {it.debug_folder}"
