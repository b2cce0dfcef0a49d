"""Registers, spills and shared memory of the Triton kernels of a run, from the ptxas inside the triton wheel.

`python -m inductor_audit_inside.deviceless.ptx RUN`, in the environment of the captured command. Kernels are compiled
for the profile's target, in the first of their configurations, and never loaded: estimates, since a device would choose
the configuration by timing.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FILE_NAME = "ptx.json"
SCHEMA_VERSION = 1
_TIMEOUT_S = 300
_TARGET = re.compile(r"^\.target\s+(\w+)", re.MULTILINE)
_FIGURES = {
    "registers": re.compile(r"Used (\d+) registers"),
    "spill_stores": re.compile(r"(\d+) bytes spill stores"),
    "spill_loads": re.compile(r"(\d+) bytes spill loads"),
    "stack_frame": re.compile(r"(\d+) bytes stack frame"),
}


def kernels(code: str) -> Iterator[tuple[str, str]]:
    """Name and source of every `NAME = async_compile.triton(NAME, SOURCE, ...)` of a wrapper."""
    for statement in ast.parse(code).body:
        call = getattr(statement, "value", None)
        if not isinstance(statement, ast.Assign) or not isinstance(call, ast.Call):
            continue
        texts = [part.value for part in call.args[:2] if isinstance(part, ast.Constant)]
        if isinstance(call.func, ast.Attribute) and call.func.attr == "triton" and len(texts) == 2:
            yield str(texts[0]), str(texts[1])


def measure(name: str, source: str, work: Path) -> dict[str, Any]:
    """Compile one kernel. Its source was generated in this run, from the program that has just been run."""
    file = work / f"{name}.py"
    file.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {file}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    autotuner = getattr(module, name)
    config = autotuner.configs[0]
    binary = _binary(autotuner._precompile_config(config))
    assembly = file.with_suffix(".ptx")
    assembly.write_text(binary.asm["ptx"], encoding="utf-8")
    return {
        "config": {**config.kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages},
        "configs": len(autotuner.configs),
        "shared_bytes": getattr(binary.metadata, "shared", None),
        **_assembled(assembly),
    }


def _binary(compiled: Any) -> Any:
    """What triton compiled, below Inductor's result (torch/_inductor/runtime/triton_heuristics.py)."""
    return getattr(compiled, "kernel", compiled)


def _assembled(assembly: Path) -> dict[str, Any]:
    """What ptxas says of it; newer triton wheels bring a second one for newer targets."""
    import triton

    target = _TARGET.search(assembly.read_text(encoding="utf-8"))
    programs = sorted(Path(triton.__file__).parent.glob("backends/nvidia/bin/ptxas*"))
    for program in programs if target else ():
        command = [str(program), "-v", f"--gpu-name={target[1]}", str(assembly), "-o", "/dev/null"]  # type: ignore[index]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        if done.returncode == 0:
            said = done.stderr + done.stdout
            return {key: int(found[1]) if (found := shape.search(said)) else None for key, shape in _FIGURES.items()}
    raise RuntimeError(f"no ptxas of this triton takes {assembly.name}")


def of_graph(folder: Path, work: Path) -> dict[str, Any]:
    """The document for one graph folder; a kernel that cannot be compiled says why."""
    found: dict[str, Any] = {}
    for name, source in kernels((folder / "output_code.py").read_text(encoding="utf-8")):
        try:
            found[name] = measure(name, source, work)
        except Exception as error:  # noqa: BLE001 - whatever the compiler says of this one kernel
            found[name] = {"error": f"{type(error).__name__}: {error}"[:500]}
    return {"schema_version": SCHEMA_VERSION, "estimates": True, "kernels": found}


def main(run: str) -> None:
    """Write `ptx.json` beside every wrapper of a run."""
    _without_static_launchers()
    with tempfile.TemporaryDirectory() as work:
        for code in sorted(Path(run).glob("torch_compile_debug/run_*/torchinductor/*/output_code.py")):
            place = Path(work) / code.parent.name
            place.mkdir(exist_ok=True)
            text = json.dumps(of_graph(code.parent, place), indent=1)
            (code.parent / FILE_NAME).write_text(text + "\n", encoding="utf-8")


def _without_static_launchers() -> None:
    """They would load the binary into the driver."""
    from torch._inductor import config

    for name in ("use_static_triton_launcher", "use_static_cuda_launcher"):
        if hasattr(config, name):
            setattr(config, name, False)


if __name__ == "__main__":
    main(sys.argv[1])
