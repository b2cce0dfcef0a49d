"""Why there is no dump at all."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path

from analyzer.artifacts.trace_log import CacheEvent
from analyzer.doctor.limits import too_long
from analyzer.doctor.records import Cause
from analyzer.doctor.scene import Scene
from analyzer.errors import ArtifactError
from analyzer.load.locate import ARTIFACT_NAMES, is_run
from analyzer.model import CacheState
from analyzer.words import counted

CAPTURE = "run `inductor-audit capture SCRIPT`: it sets the variables before torch is imported and brings cold caches"
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(: |$)")
_ABOVE = 3
"""Folders above the argument whose neighbours are searched."""


def path_too_long(scene: Scene) -> Iterator[str]:
    """The system cannot name the file, or torch could not have."""
    impossible = scene.failure is not None and scene.failure.errno == errno.ENAMETOOLONG
    why = too_long(scene.path)
    if why is not None and (impossible or scene.error is not None):
        yield why
    for text in _failures(scene):
        if "File name too long" in text:
            yield f"torch could not write its files: {_raised(text)}"


def no_such_path(scene: Scene) -> Iterator[str]:
    """Nothing is there."""
    if scene.failure is None and not scene.path.exists():
        near = _debug_folders_near(scene.path)
        yield f"there is no {scene.path}" + (f"; there is {near[0]}" if near else "")


def permission_denied(scene: Scene) -> Iterator[str]:
    """Another user's run, or one that root made in a container."""
    yield from (f"{path} may not be read by this user" for path in scene.denied)


def unreadable(scene: Scene) -> Iterator[str]:
    """A damaged archive or a file of another kind."""
    if isinstance(scene.error, ArtifactError) and not scene.traces and not scene.holds_nothing:
        yield f"{scene.error.location}: {scene.error.message}"
    elif scene.failure is not None and scene.failure.errno != errno.ENAMETOOLONG:
        yield f"{scene.path}: {scene.failure.strerror or scene.failure}"


def cache_folder(scene: Scene) -> Iterator[str]:
    """Inductor's cache holds modules under hashes, no dumps."""
    names = {path.parts[0] for path in scene.files if len(path.parts) > 1}
    if scene.error is not None and names & {"fxgraph", "aotautograd"}:
        yield f"{scene.path} is a cache of compiled graphs (it holds {', '.join(sorted(names)[:4])}), no debug folder"


def wrong_folder(scene: Scene) -> Iterator[str]:
    """No artifact inside, but a debug folder close by."""
    if not scene.holds_nothing or not scene.path.exists() or _ran_here(scene):
        return
    near = _debug_folders_near(scene.path)
    if near:
        yield f"{scene.path} holds no artifacts; {near[0]} does"


def empty_place(scene: Scene) -> Iterator[str]:
    """Nothing here and nothing near."""
    if scene.error is None or not scene.holds_nothing or _ran_here(scene):
        return
    if isinstance(scene.error, ArtifactError):
        yield f"no Inductor artifacts here: {scene.files[0]}, the only file, is none of TorchInductor's"
    else:
        yield scene.error.message


def cache_hit(scene: Scene) -> Iterator[str]:
    """Graphs that were not compiled leave no dumps."""
    run = scene.run
    if run is None or run.cache_state not in (CacheState.WARM, CacheState.MIXED):
        return
    hits = sum(1 for compile_ in scene.compiles if compile_.cache is CacheEvent.HIT)
    number = hits or sum(process.cache.hits for process in run.manifest.processes) if run.manifest else hits
    yield f"{counted(number, 'graph')} came from a warm cache: nothing was compiled, so nothing was dumped"


def untraced(scene: Scene) -> Iterator[str]:
    """The program itself switches the dumps off."""
    yield from scene.findings("untraced")


def compile_crashed(scene: Scene) -> Iterator[str]:
    """Torch's own words, from the trace log, else what the capture saw, else what is missing."""
    errors = [error for compile_ in scene.compiles for error in compile_.errors]
    yield from (_raised(error) for error in errors)
    seen = scene.findings("compile-failed", "crashed", "timeout", "interrupted")
    yield from seen
    graphs = scene.run.graphs if scene.run is not None and not (errors or seen) else ()
    for graph in graphs:
        causes = [one.cause for one in graph.artifacts if one.cause and "the compile failed" in one.cause]
        damaged = any(one.problems for one in graph.artifacts)  # which explains what is missing, too
        if causes and graph.code is None and not damaged:
            yield f"{graph.name}: {causes[0]}"


def nothing_compiled(scene: Scene) -> Iterator[str]:
    """The process ran, Inductor did not."""
    seen = scene.findings("compiled-nothing", "not-reached")
    yield from seen
    graphs = scene.run.graphs if scene.run is not None else ()
    if seen or graphs or not scene.traces or any(compile_.graphs or compile_.errors for compile_ in scene.compiles):
        return
    frames = [compile_ for compile_ in scene.compiles if compile_.key.frame_id is not None]
    if not frames:
        yield "torch was imported, but no compiled function was called: torch.compile alone compiles nothing"
    elif not any(compile_.cache is CacheEvent.HIT for compile_ in frames):
        yield f"Dynamo traced {counted(len(frames), 'frame')}, but no graph reached Inductor"


def debug_set_late(scene: Scene) -> Iterator[str]:
    """Process folders with logs alone: a late TORCH_COMPILE_DEBUG and, before torch 2.13, a warm cache look so."""
    logs = {path.name for path in scene.files if path.name.endswith("debug.log")}
    graphs = any(path.name in ARTIFACT_NAMES for path in scene.files)
    if logs and not graphs and not scene.traces and _ran_here(scene):
        yield (
            "there are only debug.log files: TORCH_COMPILE_DEBUG was set after torch had been imported, or every graph "
            "came from a warm cache; without a trace log nothing tells which"
        )


def log_alone(scene: Scene) -> Iterator[str]:
    """A trace log has every text that torch logs, and no IR dump."""
    run = scene.run
    if run is None or not scene.traces or run.cache_state in (CacheState.WARM, CacheState.MIXED):
        return
    here = [path for path in scene.files if path.name in ARTIFACT_NAMES]
    failed = any(compile_.errors for compile_ in scene.compiles)
    if run.graphs and not here and not failed and all(graph.pre is None and graph.post is None for graph in run.graphs):
        yield f"only a trace log is here ({scene.traces[0].artifact.file}), and logs hold no IR dumps"


def _ran_here(scene: Scene) -> bool:
    return any(is_run(part) for path in scene.files for part in path.parts) or bool(scene.traces)


def _failures(scene: Scene) -> Iterator[str]:
    yield from (error for compile_ in scene.compiles for error in compile_.errors)
    manifest = scene.run.manifest if scene.run is not None else None
    yield from (graph.failure for graph in (manifest.graphs if manifest else ()) if graph.failure)


def _raised(text: str) -> str:
    """The exception that a traceback ends with: a name at the start of a line, under the indented lines of calls.

    Torch adds hints and the place in the user's code below it.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    pairs = zip(["", *lines], lines, strict=False)
    found = [line for above, line in pairs if above[:1] == " " and _EXCEPTION.match(line)]
    named = [line for line in lines if line.partition(":")[0].endswith(("Error", "Exception"))]
    return (found or named or lines or ["no message"])[-1].strip()


def _debug_folders_near(path: Path) -> list[Path]:
    """`torch_compile_debug` folders beside the path and above it, nearest first."""
    absolute = Path(path.absolute())
    folders = [absolute, *list(absolute.parents)[:_ABOVE]]
    found = [folder / "torch_compile_debug" for folder in folders]
    return [folder for folder in found if _holds_runs(folder)]


def _holds_runs(folder: Path) -> bool:
    try:
        return any(is_run(name) for name in os.listdir(folder))
    except OSError:
        return False


NOTHING = (
    Cause("path too long", path_too_long, "use a shorter folder: set TORCH_COMPILE_DEBUG_DIR to one", rules_out=True),
    Cause("no such path", no_such_path, "check the spelling and the working folder", rules_out=True),
    Cause(
        "permission denied",
        permission_denied,
        "change its owner or mode (chown, chmod -R u+rX), or copy the run as the user who made it",
        rules_out=True,
    ),
    Cause("cache folder", cache_folder, f"name a debug folder instead; for one {CAPTURE}", rules_out=True),
    Cause(
        "unreadable", unreadable, "get the file again; an archive must be a whole .zip, .tar or .tar.gz", rules_out=True
    ),
    Cause("wrong folder", wrong_folder, "name that folder instead", rules_out=True),
    Cause(
        "no artifacts",
        empty_place,
        f"for a dump {CAPTURE}; `inductor-audit doctor` without RUN says what on this machine would prevent one",
        rules_out=True,
    ),
    Cause(
        "compile crashed",
        compile_crashed,
        "mend that error first; torch's whole message is in the trace log or console",
    ),
    Cause("cache hit", cache_hit, CAPTURE),
    Cause("dumps switched off", untraced, "remove what sets trace.enabled to False in the program"),
    Cause("nothing compiled", nothing_compiled, "call the compiled function in the script, with backend inductor"),
    Cause("log alone", log_alone, "name the torch_compile_debug folder that the log comes from, with its run_* folder"),
    Cause("debug switched on too late", debug_set_late, CAPTURE),
)
"""In order of importance: the first that is found is what to mend."""
