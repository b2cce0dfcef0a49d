"""Why a dump is there, and yet wrong, incomplete or surprising."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.compare.effective import Source, effective_config
from analyzer.contracts.whole_run import break_place, break_reason
from analyzer.doctor.nothing import CAPTURE
from analyzer.doctor.records import Cause, Level
from analyzer.doctor.scene import Scene
from analyzer.doctor.variables import is_unknown, nearest
from analyzer.model import Artifact, ArtifactState, CompiledGraph
from analyzer.version import at_least

OLDEST, NEWEST = (2, 5), (2, 15)
"""The torch versions that the analyzer knows."""

_DUMPS = ("ir_pre_fusion.txt", "ir_post_fusion.txt")


def _graphs(scene: Scene) -> tuple[CompiledGraph, ...]:
    return scene.run.graphs if scene.run is not None else ()


def torch_too_old(scene: Scene) -> Iterator[str]:
    """Formats before the first version that is known."""
    version = scene.run.torch_version if scene.run is not None else None
    if version is not None and version[:1].isdigit() and not at_least(version, OLDEST):
        yield f"the run was made by torch {version}; formats before {OLDEST[0]}.{OLDEST[1]} are read as far as they go"


def torch_too_new(scene: Scene) -> Iterator[str]:
    """Formats after the last version that is known."""
    version = scene.run.torch_version if scene.run is not None else None
    if version is not None and at_least(version, (NEWEST[0], NEWEST[1] + 1)):
        yield f"the run was made by torch {version}; the newest that is known is {NEWEST[0]}.{NEWEST[1]}"


def damaged_files(scene: Scene) -> Iterator[str]:
    """Files that are cut short, empty, or not what Inductor writes."""
    for graph in _graphs(scene):
        for artifact in graph.artifacts:
            if artifact.state is ArtifactState.PARTIAL and artifact.problems:
                problem = artifact.problems[0]
                yield f"{graph.name}/{artifact.file}:{problem.location.line}: {problem.message}"
            elif _is_cut_to_nothing(graph, artifact):
                yield f"{graph.name}/{artifact.file} is empty"


def _is_cut_to_nothing(graph: CompiledGraph, artifact: Artifact) -> bool:
    """Dumps are rightly empty for a graph without kernels, and where control flow has overwritten them."""
    if artifact.state is not ArtifactState.EMPTY:
        return False
    if artifact.file not in _DUMPS:
        return True
    calls = graph.code is not None and next(graph.code.calls(), None) is not None
    return calls and not graph.overwritten


def files_left_out(scene: Scene) -> Iterator[str]:
    """The output code is there, so the dumps were written once."""
    for graph in _graphs(scene):
        gone = [one.file for one in graph.artifacts if one.state is ArtifactState.MISSING and _was_written(one)]
        if graph.code is not None and graph.trace is None and gone:
            yield f"{graph.name}: {', '.join(gone)} not among the files, though Inductor writes them before the code"


def _was_written(artifact: Artifact) -> bool:
    return artifact.file in _DUMPS and "before the output code" in (artifact.cause or "")


def overwritten(scene: Scene) -> Iterator[str]:
    """Inductor writes the dumps of branches and loop bodies over those of the graph around them."""
    for graph in _graphs(scene):
        if graph.overwritten:
            yield f"{graph.name}: the dumps are those of {', '.join(graph.overwritten)}, written over the graph's own"


def options_ignored(scene: Scene) -> Iterator[str]:
    """What the capture was asked for was not in force when a graph was compiled."""
    yield from scene.findings("setting-failed", "switch-failed")
    wanted = scene.run.manifest.settings if scene.run is not None and scene.run.manifest is not None else {}
    for graph in _graphs(scene):
        config = effective_config(graph)
        for key, value in wanted.items() if config.source is not Source.NONE else ():
            found = config.value(key)
            if found is not None and found != value:
                yield f"{graph.name}: {key} was {found}, not {value}: the program sets it itself"


def unknown_variables(scene: Scene) -> Iterator[str]:
    """Variables that no version of torch reads; torch itself says nothing about them."""
    scripts = [graph.runnable for graph in _graphs(scene) if graph.runnable is not None]
    for name in dict.fromkeys(name for script in scripts for name in script.environment):
        if is_unknown(name):
            near = nearest(name)
            yield f"torch reads no variable {name}" + (f"; there is {near}" if near else "")


def provenance_off(scene: Scene) -> Iterator[str]:
    """Torch 2.7 and later can say which op became which kernel, and was told not to."""
    version = scene.run.torch_version if scene.run is not None else None
    for graph in _graphs(scene):
        known = graph.provenance is not None or graph.sidecar is not None
        if version is None or not at_least(version, (2, 7)) or known or graph.code is None:
            continue
        if graph.kind != "backward":
            yield f"{graph.name}: no provenance record, so ops are matched with kernels by structure alone"


def older_runs(scene: Scene) -> Iterator[str]:
    """Only the newest launch is read."""
    if scene.older:
        yield f"{len(scene.older)} older run(s) lie beside the one that was read: {', '.join(scene.older[-3:])}"


def graph_breaks(scene: Scene) -> Iterator[str]:
    """Dynamo cut a function in two, so there are more and smaller graphs."""
    for compile_ in scene.compiles:
        for text in compile_.graph_breaks:
            place = break_place(text)
            where = f"{place.file}:{place.line}: " if place is not None else ""
            yield f"{where}{break_reason(text)}"


def recompiles(scene: Scene) -> Iterator[str]:
    """A function was compiled again because its guards failed, so it has several graphs."""
    for compile_ in scene.compiles:
        if compile_.recompile_reasons:
            yield f"compile {compile_.key}: {'; '.join(compile_.recompile_reasons)}"


WRONG = (
    Cause("damaged files", damaged_files, "copy the debug folder again, or capture anew: these files are not whole"),
    Cause("files left out", files_left_out, "copy the whole graph folder, not single files of it"),
    Cause(
        "options ignored", options_ignored, "remove the assignment in the program, or set the option where it is made"
    ),
    Cause(
        "unknown variable",
        unknown_variables,
        "set the option with `inductor-audit capture --set KEY=VALUE`, which checks it",
    ),
    Cause(
        "dumps overwritten", overwritten, "capture with `inductor-audit capture`: it records every subgraph by itself"
    ),
    Cause("torch too old", torch_too_old, f"capture with torch {OLDEST[0]}.{OLDEST[1]} or later"),
    Cause("torch too new", torch_too_new, "update inductor-audit", Level.NOTE),
    Cause("provenance off", provenance_off, f"{CAPTURE}; by hand, INDUCTOR_PROVENANCE=1", Level.NOTE),
    Cause(
        "old run beside a new one", older_runs, "name the run_* folder that you mean, or delete the others", Level.NOTE
    ),
    Cause("graph breaks", graph_breaks, "mend the first one, or pass fullgraph=True to see it as an error", Level.NOTE),
    Cause("recompiles", recompiles, "call with the same shapes and types, or pass dynamic=True", Level.NOTE),
)
"""In order of importance."""
